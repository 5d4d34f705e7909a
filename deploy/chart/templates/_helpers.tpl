{{/* Labels of every object; (list . "component"). Helm adds app.kubernetes.io/managed-by. */}}
{{- define "clusterset-dns.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* An image; (list . "repository"). A tag that is a digest is joined with @. */}}
{{- define "clusterset-dns.image" -}}
{{- $root := index . 0 -}}
{{- $tag := default $root.Chart.AppVersion $root.Values.image.tag -}}
{{- $registry := trimSuffix "/" $root.Values.image.registry -}}
{{- printf "%s%s%s%s" (ternary (printf "%s/" $registry) "" (ne $registry "")) (index . 1) (ternary "@" ":" (hasPrefix "sha256:" $tag)) $tag -}}
{{- end }}

{{/* What a pod here may do to its node: nothing. */}}
{{- define "clusterset-dns.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "clusterset-dns.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where pods run; (list . values component): apart from each other, where that is possible. */}}
{{- define "clusterset-dns.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 1 -}}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "clusterset-dns.labels" (list $root (index $ 2)) | nindent 8 }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The patterns of denied namespaces as one regular expression: * and ? are those of path.Match, for names without a slash. */}}
{{- define "clusterset-dns.deniedExpression" -}}
{{- $parts := list -}}
{{- range .Values.deniedNamespaces -}}
{{- $parts = append $parts (. | replace "*" ".*" | replace "?" ".") -}}
{{- end -}}
^({{ join "|" $parts }})$
{{- end }}
