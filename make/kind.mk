# The image, the chart, and a cluster of real containers: docker or buildah, kind, helm and kubectl are used as found.

CONTAINER_TOOL ?= docker
PYTHON_IMAGE ?= python:3.11-slim-bookworm
IMAGE_PYTHON ?= 3.11
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
REVISION := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
IMAGE ?= vcjob:$(VERSION)

CHART := deploy/helm/vcjob
KUBE_VERSION := 1.36.3
KIND_CLUSTER ?= vcjob
KIND_NODE_IMAGE ?= kindest/node:v1.36.3
KIND_KUBECONFIG ?= build/kind.kubeconfig
KIND_CONFIG ?= deploy/kind/cluster.yaml
KIND_WAIT ?= 180s
HELM_VALUES ?= deploy/kind/values.yaml
E2E_ARGS ?=

# What is missing and how to get it, before anything has been done.
need = @for tool in $(1); do scripts/need $$tool || exit 1; done

.PHONY: image
image: venv ## the container image $(IMAGE)
	$(call need,$(CONTAINER_TOOL))
	@scripts/wheelhouse $(BIN)/python $(IMAGE_PYTHON) build/wheelhouse
	@test -n "$$($(CONTAINER_TOOL) images -q $(PYTHON_IMAGE) 2>/dev/null)" || echo "$(PYTHON_IMAGE) is not here yet; $(CONTAINER_TOOL) will pull it (or set PYTHON_IMAGE to one that is)"
	@echo "building $(IMAGE) with $(CONTAINER_TOOL) ..."
	@$(CONTAINER_TOOL) build --quiet --build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --build-arg VERSION=$(VERSION) \
	  --build-arg REVISION=$(REVISION) -t $(IMAGE) . >/dev/null
	@$(CONTAINER_TOOL) images $(IMAGE)

.PHONY: chart-crds
chart-crds: ## the CRDs and rights of deploy/ copied into the chart
	@mkdir -p $(CHART)/files
	@rm -rf $(CHART)/files/crds $(CHART)/files/rbac
	@cp -r deploy/crds deploy/rbac $(CHART)/files/

# What is on the path is used; where there is none, one is downloaded or built.
HELM_VERSION ?= v3.22.0
TOOLS := $(HOME)/.cache/vcjob/tools
HELM := $(shell command -v helm || echo $(TOOLS)/helm)

.PHONY: helm
helm: $(HELM) ## helm, found, downloaded or built with Go once
$(TOOLS)/helm:
	@scripts/get-helm $(HELM_VERSION) $(TOOLS)

.PHONY: helm-lint
helm-lint: chart-crds helm ## helm lint of the chart, with every value file of the tests
	@for values in /dev/null tests/unit/deploy/values/*.yaml; do \
	  $(HELM) lint --strict --quiet --kube-version $(KUBE_VERSION) $(CHART) -f $$values || exit 1; done
	@echo "the chart is clean"

unit: helm

.PHONY: manifests
manifests: chart-crds helm ## deploy/manifests/vcjob.yaml: what the chart installs, for kubectl apply
	@mkdir -p deploy/manifests
	@scripts/manifests $(HELM) $(CHART) > deploy/manifests/vcjob.yaml.new && mv deploy/manifests/vcjob.yaml.new deploy/manifests/vcjob.yaml
	@echo "deploy/manifests/vcjob.yaml: $$(grep -c '^kind:' deploy/manifests/vcjob.yaml) objects"

.PHONY: kind-up kind-create kind-install
kind-up: kind-create kind-install ## a kind cluster with the operator in it
	@echo "ready. Next:"
	@echo "  export KUBECONFIG=$(abspath $(KIND_KUBECONFIG))"
	@echo "  kubectl apply -f examples/plugin-env.yaml && kubectl get jobs.batch.volcano.sh -w"

kind-create:
	$(call need,docker kind kubectl)
	@mkdir -p $(dir $(KIND_KUBECONFIG))
	@if kind get clusters 2>/dev/null | grep -qx '$(KIND_CLUSTER)'; then \
	  echo "cluster $(KIND_CLUSTER) is there already"; \
	  kind export kubeconfig --name $(KIND_CLUSTER) --kubeconfig $(KIND_KUBECONFIG) --quiet; \
	else \
	  docker image inspect $(KIND_NODE_IMAGE) >/dev/null 2>&1 || echo "$(KIND_NODE_IMAGE) is not here yet; kind will pull it (or set KIND_NODE_IMAGE to one that is)"; \
	  kind create cluster --name $(KIND_CLUSTER) --image $(KIND_NODE_IMAGE) --config $(KIND_CONFIG) --kubeconfig $(KIND_KUBECONFIG) --wait $(KIND_WAIT) \
	  || { echo "kind could not create the cluster; 'kind create cluster --retain' keeps the nodes, 'docker logs $(KIND_CLUSTER)-control-plane' says why" >&2; exit 1; }; \
	fi

# The tag is the image's own digest, so that a new build is a new roll-out and the same build is none.
kind-install: image chart-crds helm
	@tag=$$(docker image inspect -f '{{.Id}}' $(IMAGE) | sed 's/^sha256://' | cut -c1-12) \
	&& docker tag $(IMAGE) vcjob:$$tag \
	&& echo "loading vcjob:$$tag into the nodes ..." \
	&& kind load docker-image vcjob:$$tag --name $(KIND_CLUSTER) \
	&& echo "installing the chart ..." \
	&& KUBECONFIG=$(KIND_KUBECONFIG) $(HELM) upgrade --install vcjob $(CHART) --namespace vcjob-system --create-namespace \
	  -f $(HELM_VALUES) --set image.repository=docker.io/library/vcjob --set image.tag=$$tag --wait --timeout $(KIND_WAIT) >/dev/null \
	|| { echo "the operator did not become ready:" >&2; KUBECONFIG=$(KIND_KUBECONFIG) kubectl -n vcjob-system get pods,events >&2; exit 1; }
	@KUBECONFIG=$(KIND_KUBECONFIG) kubectl -n vcjob-system get deployments

.PHONY: kind-down
kind-down: ## remove the kind cluster
	$(call need,docker kind)
	@kind delete cluster --name $(KIND_CLUSTER) --kubeconfig $(KIND_KUBECONFIG)
	@rm -f $(KIND_KUBECONFIG)

FRAMEWORKS_IMAGE ?= vcjob-frameworks:1
# On the workers only: the image is large, and no Job runs on the control plane.
KIND_WORKERS = $$(kind get nodes --name $(KIND_CLUSTER) | grep -v control-plane | paste -sd,)

.PHONY: e2e-image
e2e-image: kind-create ## the image with the real frameworks, for the tests on kind
	@docker image inspect $(FRAMEWORKS_IMAGE) >/dev/null 2>&1 || { \
	  echo "building $(FRAMEWORKS_IMAGE) from Debian and PyPI packages (3 GB, some minutes, needs a network) ..."; \
	  docker build -t $(FRAMEWORKS_IMAGE) examples/frameworks || { \
	    echo "no $(FRAMEWORKS_IMAGE): load one, or set FRAMEWORKS_IMAGE" >&2; exit 1; }; }
	@docker build --quiet --build-arg FRAMEWORKS_IMAGE=$(FRAMEWORKS_IMAGE) -t vcjob-e2e:1 tests/e2e/image >/dev/null
	@echo "loading vcjob-e2e:1 into the workers (3 GB: some minutes the first time) ..."
	@kind load docker-image vcjob-e2e:1 --name $(KIND_CLUSTER) --nodes "$(KIND_WORKERS)"

.PHONY: e2e
e2e: kind-up e2e-image ## tests with real Pods on kind (E2E_ARGS go to pytest)
	PATH="$(dir $(HELM)):$$PATH" KUBECONFIG=$(abspath $(KIND_KUBECONFIG)) KIND_CLUSTER=$(KIND_CLUSTER) \
	  $(BIN)/python -m pytest tests/e2e $(E2E_ARGS)
