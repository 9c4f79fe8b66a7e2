// The server is a function on the official Go SDK. Its input decides what it does, so that tests
// can check every part of a response.
package main

import (
	"context"
	"flag"
	"log"
	"strings"
	"time"

	function "github.com/crossplane/function-sdk-go"
	"github.com/crossplane/function-sdk-go/errors"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

type peer struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (peer) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	input := req.GetInput().GetFields()
	if text := input["fail"].GetStringValue(); text != "" {
		return nil, status.Error(codes.FailedPrecondition, text)
	}
	if ms := input["milliseconds"].GetNumberValue(); ms > 0 {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	rsp := response.To(req, response.DefaultTTL)
	if overlay := input["response"]; overlay != nil {
		return rsp, merge(rsp, overlay)
	}
	if n := int(input["padding"].GetNumberValue()); n > 0 {
		response.Normal(rsp, strings.Repeat("x", n))
		return rsp, nil
	}
	if name := input["require"].GetStringValue(); name != "" {
		rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			name: {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: name}},
		}}
		required, err := request.GetRequiredResources(req)
		if err != nil {
			return nil, err
		}
		if found, ok := required[name]; ok {
			response.Normalf(rsp, "found %d", len(found))
		}
	}

	xr, err := request.GetObservedCompositeResource(req)
	if err != nil {
		response.Fatal(rsp, errors.Wrap(err, "no composite resource"))
		return rsp, nil
	}
	replicas, err := xr.Resource.GetInteger("spec.replicas")
	if err != nil {
		response.Fatal(rsp, errors.Wrap(err, "no replicas"))
		return rsp, nil
	}
	desired := map[resource.Name]*resource.DesiredComposed{
		"from-go": {Resource: composed.New(), Ready: resource.ReadyTrue},
	}
	desired["from-go"].Resource.SetAPIVersion("example.org/v1")
	desired["from-go"].Resource.SetKind("Thing")
	if err := desired["from-go"].Resource.SetInteger("spec.replicas", replicas+1); err != nil {
		return nil, err
	}
	if err := response.SetDesiredComposedResources(rsp, desired); err != nil {
		return nil, err
	}
	response.SetContextKey(rsp, "peer", structpb.NewStringValue("go"))
	response.Warning(rsp, errors.New("mind the gap")).WithReason("Gap").TargetCompositeAndClaim()
	response.ConditionTrue(rsp, "Peered", "Spoken").WithMessage("hello").TargetCompositeAndClaim()
	return rsp, nil
}

// merge puts a response in the form of JSON over another one, as function-dummy does.
func merge(rsp *fnv1.RunFunctionResponse, overlay *structpb.Value) error {
	text, err := overlay.MarshalJSON()
	if err != nil {
		return err
	}
	over := &fnv1.RunFunctionResponse{}
	if err := protojson.Unmarshal(text, over); err != nil {
		return err
	}
	proto.Merge(rsp, over)
	return nil
}

func main() {
	network := flag.String("network", "tcp", "network")
	address := flag.String("address", "127.0.0.1:0", "address")
	certs := flag.String("tls-certs-dir", "", "folder of certificates")
	insecure := flag.Bool("insecure", false, "plain text")
	flag.Parse()
	log.Fatal(function.Serve(peer{},
		function.Listen(*network, *address),
		function.MTLSCertificates(*certs),
		function.Insecure(*insecure),
		function.WithMetricsServer(""),
	))
}
