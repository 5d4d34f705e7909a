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

{{/* The security context of a container; (list . "CAPABILITY" ...): that of the values, and the capabilities added. */}}
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
