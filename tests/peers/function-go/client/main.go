// The client calls a function like a control plane: with Go's gRPC, either version of the protocol,
// with or without TLS. It reads the request as JSON and prints the response or the error.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	fnv1beta1 "github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func credentialsFrom(dir string) credentials.TransportCredentials {
	if dir == "" {
		return insecure.NewCredentials()
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		log.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		log.Fatal("no certificate in ca.crt")
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots,
	})
}

func show(m proto.Message, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(protojson.Format(m))
}

func main() {
	target := flag.String("target", "", "gRPC target")
	certs := flag.String("certs", "", "folder of certificates")
	call := flag.String("call", "v1", "v1, v1beta1, services or health")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(*target, grpc.WithTransportCredentials(credentialsFrom(*certs)))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	switch *call {
	case "services":
		stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if err := stream.Send(&reflectionv1.ServerReflectionRequest{
			MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
		}); err != nil {
			log.Fatal(err)
		}
		rsp, err := stream.Recv()
		if err != nil {
			log.Fatal(err)
		}
		names := []string{}
		for _, s := range rsp.GetListServicesResponse().GetService() {
			names = append(names, s.GetName())
		}
		slices.Sort(names)
		fmt.Println(strings.Join(names, "\n"))
		return
	case "health":
		rsp, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
		show(rsp, err)
		return
	}

	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	if *call == "v1beta1" {
		req := &fnv1beta1.RunFunctionRequest{}
		if err := protojson.Unmarshal(in, req); err != nil {
			log.Fatal(err)
		}
		rsp, err := fnv1beta1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, req)
		show(rsp, err)
		return
	}
	req := &fnv1.RunFunctionRequest{}
	if err := protojson.Unmarshal(in, req); err != nil {
		log.Fatal(err)
	}
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, req)
	show(rsp, err)
}
