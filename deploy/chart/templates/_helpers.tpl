{{/* Labels that select pods; (list . "component"). They never change: selectors of Deployments are immutable. */}}
{{- define "clusterset-dns.selector" -}}
app.kubernetes.io/name: clusterset-dns
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of every object; (list . "component" more...). Labels of the values, and of the maps that follow, do not override
the chart's. Helm adds app.kubernetes.io/managed-by. */}}
{{- define "clusterset-dns.labels" -}}
{{- $root := index . 0 -}}
{{- $labels := include "clusterset-dns.selector" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "clusterset-dns" -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "helm.sh/chart" (printf "clusterset-dns-%s" $root.Chart.Version | replace "+" "_") -}}
{{- range slice . 2 -}}
{{- $labels = merge $labels (default dict .) -}}
{{- end -}}
{{- toYaml (merge $labels (default dict $root.Values.commonLabels)) -}}
{{- end }}

{{/* The id of this cluster, empty if the ClusterProperty has it. */}}
{{- define "clusterset-dns.clusterId" -}}
{{- $id := required "clusterId is required: set the id of this cluster, which is unique in the set, or fromClusterProperty" .Values.clusterId -}}
{{- if ne $id "fromClusterProperty" }}{{ $id }}{{ end -}}
{{- end }}

{{/* An image; (list . values). */}}
{{- define "clusterset-dns.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with trimSuffix "/" $root.Values.image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $image.tag }}{{ end -}}
{{- end }}

{{/* The security context of a container; (list . "CAPABILITY" ...): securityContext of the values, with capabilities added. */}}
{{- define "clusterset-dns.securityContext" -}}
{{- $root := first . -}}
{{- $context := deepCopy (default dict $root.Values.securityContext) -}}
{{- with rest . -}}
{{- $capabilities := default dict $context.capabilities -}}
{{- $_ := set $capabilities "add" (concat (default list $capabilities.add) . | uniq) -}}
{{- $_ := set $context "capabilities" $capabilities -}}
{{- end -}}
{{- toYaml $context -}}
{{- end }}

{{/* Scheduling of pods; (list . values component). */}}
{{- define "clusterset-dns.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 1 -}}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $constraint := deepCopy . }}
  {{- if not (hasKey . "labelSelector") }}
  {{- $_ := set $constraint "labelSelector" (dict "matchLabels" (include "clusterset-dns.selector" (list $root (index $ 2)) | fromYaml)) }}
  {{- end }}
  {{- list $constraint | toYaml | nindent 2 }}
  {{- end }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The patterns of denied namespaces as one regular expression: * and ? as in path.Match, for names without a slash. */}}
{{- define "clusterset-dns.deniedExpression" -}}
{{- $parts := list -}}
{{- range .Values.deniedNamespaces -}}
{{- $parts = append $parts (. | replace "*" ".*" | replace "?" ".") -}}
{{- end -}}
^({{ join "|" $parts }})$
{{- end }}

{{/* The DeploymentStrategy of a Deployment. The type Recreate permits no rollingUpdate. */}}
{{- define "clusterset-dns.strategy" -}}
strategy:
  {{- if eq (default "" .type) "Recreate" }}
  type: Recreate
  {{- else }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
