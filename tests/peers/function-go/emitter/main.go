// The emitter sends messages to a sidecar like a control plane or a provider: with Go's gRPC and the
// official stubs. It reads lines of JSON with a method and a request, and prints the code of each
// call.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	changelogs "github.com/crossplane/crossplane-runtime/v2/apis/changelogs/proto/v1alpha1"
	pipeline "github.com/crossplane/crossplane-runtime/v2/apis/pipelineinspector/proto/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// No call takes as long as this, not even on a busy machine.
const patience = 2 * time.Minute

func read(text json.RawMessage, message proto.Message) {
	if err := protojson.Unmarshal(text, message); err != nil {
		log.Fatal(err)
	}
}

func emit(connection *grpc.ClientConn, method string, request json.RawMessage) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	switch method {
	case "EmitRequest":
		message := &pipeline.EmitRequestRequest{}
		read(request, message)
		_, err = pipeline.NewPipelineInspectorServiceClient(connection).EmitRequest(ctx, message)
	case "EmitResponse":
		message := &pipeline.EmitResponseRequest{}
		read(request, message)
		_, err = pipeline.NewPipelineInspectorServiceClient(connection).EmitResponse(ctx, message)
	case "SendChangeLog":
		message := &changelogs.SendChangeLogRequest{}
		read(request, message)
		_, err = changelogs.NewChangeLogServiceClient(connection).SendChangeLog(ctx, message)
	default:
		log.Fatalf("unknown method %s", method)
	}
	return err
}

func main() {
	socket := flag.String("socket", "", "path of the socket")
	flag.Parse()
	connection, err := grpc.NewClient("unix://"+*socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	decoder := json.NewDecoder(os.Stdin)
	for decoder.More() {
		var message struct {
			Method  string          `json:"method"`
			Request json.RawMessage `json:"request"`
		}
		if err := decoder.Decode(&message); err != nil {
			log.Fatal(err)
		}
		fmt.Println(status.Code(emit(connection, message.Method, message.Request)))
	}
}
