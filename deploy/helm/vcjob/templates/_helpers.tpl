{{- define "vcjob.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of a Service has at most 63 letters, and the longest that is made of this one adds -operator-metrics: 17. */}}
{{- define "vcjob.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else if contains (include "vcjob.name" .) .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "vcjob.name" .) | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vcjob.operatorName" -}}
{{- include "vcjob.fullname" . }}-operator
{{- end -}}

{{- define "vcjob.webhookName" -}}
{{- include "vcjob.fullname" . }}-webhook
{{- end -}}

{{- define "vcjob.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "vcjob.operatorName" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "vcjob.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Labels by which objects are found; they never change. Takes (list $ "component"). */}}
{{- define "vcjob.selector" -}}
app.kubernetes.io/name: {{ include "vcjob.name" (first .) | quote }}
app.kubernetes.io/instance: {{ (first .).Release.Name | quote }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{/* All labels of an object. Takes (list $ "component"). The bare managed-by is always Helm; `make manifests` replaces it. */}}
{{- define "vcjob.labels" -}}
{{- $root := first . -}}
{{ include "vcjob.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* One document of a file of deploy/, by kind and name. Takes (list $ "file" "kind" "name"); gives YAML. */}}
{{- define "vcjob.document" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 2 -}}
{{- $name := index . 3 -}}
{{- $found := dict -}}
{{- range splitList "\n---\n" ($root.Files.Get (index . 1)) -}}
{{- $document := fromYaml . -}}
{{- if and (eq (default "" $document.kind) $kind) (eq $document.metadata.name $name) -}}
{{- $found = $document -}}
{{- end -}}
{{- end -}}
{{- if not $found -}}
{{- fail (printf "%s holds no %s %s; run: make chart-crds" (index . 1) $kind $name) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* The operator's rules of one scope. Takes (list $ "namespaced" | "cluster" | "all"); gives a YAML list, perhaps []. */}}
{{- define "vcjob.operatorRules" -}}
{{- $root := first . -}}
{{- $scope := last . -}}
{{- $gangs := list "podgroups" "queues" "priorityclasses" -}}
{{- $clusterScoped := list "queues" "priorityclasses" -}}
{{- $rules := list -}}
{{- $role := include "vcjob.document" (list $root "files/rbac/operator.yaml" "ClusterRole" "vcjob-operator") | fromYaml -}}
{{- range $role.rules -}}
{{- $resources := list -}}
{{- range .resources -}}
{{- $needed := or (ne $root.Values.gangScheduler "none") (not (has . $gangs)) -}}
{{- $inScope := or (eq $scope "all") (eq (has . $clusterScoped) (eq $scope "cluster")) -}}
{{- if and $needed $inScope -}}
{{- $resources = append $resources . -}}
{{- end -}}
{{- end -}}
{{- if $resources -}}
{{- $rules = append $rules (merge (dict "resources" $resources) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{- define "vcjob.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "vcjob.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where the Pods of a component may run. Takes (list $ "component"). */}}
{{- define "vcjob.placement" -}}
{{- $values := (first .).Values -}}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
topologySpreadConstraints:
{{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    # Only replicas of the same version count, or an upgrade would end lopsided.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "vcjob.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{/* The kinds that the webhook answers for, as a JSON list. Queues belong to no namespace, so a release for some namespaces leaves them alone. */}}
{{- define "vcjob.admission" -}}
{{- if .Values.webhook.admission -}}
{{- toJson .Values.webhook.admission -}}
{{- else if eq .Values.gangScheduler "none" -}}
["jobs"]
{{- else if .Values.watchNamespaces -}}
["jobs", "podgroups"]
{{- else -}}
["jobs", "podgroups", "queues"]
{{- end -}}
{{- end -}}

{{/* The webhook's rules from deploy/rbac, under the names of this release. Takes (list $ "Role" | "ClusterRole"). */}}
{{- define "vcjob.webhookRules" -}}
{{- $root := first . -}}
{{- $kinds := include "vcjob.admission" $root | fromJsonArray -}}
{{- $rules := list -}}
{{- range $rule := (include "vcjob.document" (list $root "files/rbac/webhook.yaml" (last .) "vcjob-webhook") | fromYaml).rules -}}
{{- $needed := not $root.Values.webhook.certManager.enabled -}}
{{- if has "secrets" $rule.resources -}}
{{- $_ := set $rule "resourceNames" (list (printf "%s-cert" (include "vcjob.webhookName" $root))) -}}
{{- else if has "admissionregistration.k8s.io" $rule.apiGroups -}}
{{- $_ := set $rule "resourceNames" (list (include "vcjob.fullname" $root)) -}}
{{- else if has "namespaces" $rule.resources -}}
{{- $needed = has "podgroups" $kinds -}}
{{- with $root.Values.watchNamespaces -}}
{{- $_ := set $rule "resourceNames" . -}}
{{- end -}}
{{- else -}}
{{- $needed = or (ne $root.Values.gangScheduler "none") (has "queues" $kinds) -}}
{{- end -}}
{{- if $needed -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}
