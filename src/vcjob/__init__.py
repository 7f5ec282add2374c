"""vcjob: a Kubernetes operator for `batch.volcano.sh` Jobs."""

__all__ = ("__version__",)

__version__ = "0.1.0"
