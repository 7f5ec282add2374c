"""The files of examples/, made to fit a small cluster that reaches no registry.

Three things change and nothing else does: images become `vcjob-e2e:1` (tests/e2e/image, with the real frameworks and
the few programs that the articles' own images bring), resources are dropped, since the nodes of a test share two cores
and have no GPU, and Pods get two seconds to stop instead of thirty. Commands, names, plugins, policies and volumes
stay to the letter.
"""

import json
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ("EXAMPLES", "IMAGES", "read_example")

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
IMAGES: Final = {
    "nginx": "vcjob-e2e:1",
    "volcanosh/dist-mnist-tf-example:0.0.1": "vcjob-e2e:1",
    "volcanosh/example-mpi:0.0.3": "vcjob-e2e:1",
    "lyd911/mindspore-gpu-example:0.2.0": "vcjob-e2e:1",
    "tensorflow/tensorflow:2.4.0": "vcjob-e2e:1",
    "pytorch/pytorch:2.4.1-cuda11.8-cudnn9-runtime": "vcjob-e2e:1",
    "rayproject/ray:latest-py311-cpu": "vcjob-e2e:1",
    "vcjob-frameworks:1": "vcjob-e2e:1",
    "busybox:1.36": "busybox:1.36",
}


def read_example(name: str) -> dict[str, Any]:
    """Return the Job of an example with images that are on the nodes. Raises KeyError for an unknown image."""
    # Through JSON, so that two tasks with one YAML anchor have two templates.
    job: dict[str, Any] = json.loads(json.dumps(yaml.safe_load((EXAMPLES / name).read_text())))
    for task in job["spec"]["tasks"]:
        spec = task["template"]["spec"]
        spec.setdefault("terminationGracePeriodSeconds", 2)
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            container["image"] = IMAGES[container["image"]]
            container["imagePullPolicy"] = "IfNotPresent"
            container.pop("resources", None)
    arguments = job["spec"]["plugins"].get("pytorch", [])
    if "--wait-master-enabled" in arguments:  # the init container has an image too
        arguments.append(f"--wait-master-image={IMAGES['pytorch/pytorch:2.4.1-cuda11.8-cudnn9-runtime']}")
    return job
