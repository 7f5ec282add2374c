"""The local control plane behind `vcjob cluster`: a real API server on loopback, for trying, testing and measuring.

It stands alone: nothing here knows the operator, and the operator knows nothing of it. Linux only, because processes
are recognised through /proc.
"""
