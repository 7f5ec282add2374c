"""Stands in for the distributed MNIST of the articles' image: proves the cluster of TF_CONFIG without a training.

A parameter server answers on its port for a while; a worker asks every parameter server by its name and then ends.
"""

import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
print("TF_CONFIG", json.dumps(config), flush=True)
assert cluster[task["type"]][task["index"]].startswith(socket.gethostname() + "."), (task, socket.gethostname())

if task["type"] == "ps":
    server = socket.create_server(("", 2222))
    server.settimeout(120)
    while True:
        server.accept()[0].close()

for address in cluster["ps"]:
    host, port = address.rsplit(":", 1)
    for _ in range(120):
        try:
            socket.create_connection((host, int(port)), timeout=2).close()
            print("reached", address, flush=True)
            break
        except OSError as error:
            print(address, error, flush=True)
            time.sleep(1)
    else:
        raise SystemExit(f"{address} cannot be reached")
