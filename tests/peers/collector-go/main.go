// The collector receives spans like an OpenTelemetry collector: with the code by which collectors read
// OTLP in JSON. It prints its address, and then a line of JSON for each span.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

type link struct {
	Trace      string         `json:"trace"`
	Span       string         `json:"span"`
	Attributes map[string]any `json:"attributes"`
}

type span struct {
	Service    any            `json:"service"`
	Trace      string         `json:"trace"`
	Span       string         `json:"span"`
	Parent     string         `json:"parent"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Nanos      int64          `json:"nanos"`
	Status     string         `json:"status"`
	Message    string         `json:"message"`
	Attributes map[string]any `json:"attributes"`
	Links      []link         `json:"links"`
}

func read(resource pcommon.Resource, from ptrace.Span) span {
	links := []link{}
	for _, one := range from.Links().All() {
		links = append(links, link{one.TraceID().String(), one.SpanID().String(), one.Attributes().AsRaw()})
	}
	return span{
		Service:    resource.Attributes().AsRaw()["service.name"],
		Trace:      from.TraceID().String(),
		Span:       from.SpanID().String(),
		Parent:     from.ParentSpanID().String(),
		Name:       from.Name(),
		Kind:       from.Kind().String(),
		Nanos:      from.EndTimestamp().AsTime().Sub(from.StartTimestamp().AsTime()).Nanoseconds(),
		Status:     from.Status().Code().String(),
		Message:    from.Status().Message(),
		Attributes: from.Attributes().AsRaw(),
		Links:      links,
	}
}

func traces(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "expected JSON", http.StatusUnsupportedMediaType)
		return
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, resource := range request.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, one := range scope.Spans().All() {
				line, err := json.Marshal(read(resource.Resource(), one))
				if err != nil {
					log.Fatal(err)
				}
				fmt.Println(string(line))
			}
		}
	}
	answer, err := ptraceotlp.NewExportResponse().MarshalJSON()
	if err != nil {
		log.Fatal(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	http.HandleFunc("POST /v1/traces", traces)
	log.Fatal(http.Serve(listener, nil))
}
