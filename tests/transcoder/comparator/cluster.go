package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// cluster is the whole product as processes with simulated engines, as tollgate-test-cluster describes it.
type cluster struct {
	Port  int               `json:"port"`
	Keys  map[string]string `json:"keys"`
	Of    map[string]string `json:"workspaces"`  // workspaces of the keys
	Admin map[string]string `json:"admin"`      // gRPC addresses of the admin services, by process
	stop  func() error
}

func startCluster(program string) (*cluster, error) {
	command := exec.Command(program, "--tcp", "--log-level", "error")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the cluster does not start: %w", err)
	}
	c := &cluster{}
	c.stop = func() error {
		input.Close()
		return command.Wait()
	}
	return c, json.Unmarshal([]byte(line), c)
}

// use makes receipts, usage, refusals and entries of the ledger.
func (c *cluster) use() error {
	body := `{"model":"sim/model","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`
	for i := 0; i < 12; i++ {
		for _, key := range []string{"good", "broke", "narrow", "limited"} {
			r, err := http.NewRequest("POST", fmt.Sprintf("http://127.0.0.1:%d/v1/chat/completions", c.Port), strings.NewReader(body))
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+c.Keys[key])
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			answer.Body.Close()
			if key == "good" && answer.StatusCode != 200 {
				return fmt.Errorf("a request has status %d", answer.StatusCode)
			}
		}
	}
	return nil
}

// made creates resources of the workspace, by target. All through one front: each may be made once.
func (c *cluster) made() map[string]string {
	workspace := "/admin/v1/workspaces/" + c.Of["good"]
	return map[string]string{
		workspace + "/creditGrants?request_id=grant":   `{"amountUsd":"1.5"}`,
		workspace + "/adjustments?request_id=small":    `{"kind":"ADJUSTMENT_KIND_CREDIT","amountUsd":"1","reason":"<b> & \u2028 é"}`,
		"/admin/v1/ledgerVerifications?request_id=one": `{}`,
		"PATCH /admin/v1/plans/first?request_id=plan":  `{"keyLimits":{"requestsPerMinute":"10"}}`,
		"PATCH " + workspace + "?request_id=name":      `{"displayName":"\"quoted\" <&> \ud83d\ude00"}`,
	}
}

// homes maps services to processes, as the option home in proto/tollgate/admin/v1 does.
var homes = map[string]string{"AuditService": "auth", "InvitationService": "auth", "KeyService": "auth", "LimitService": "auth", "MemberService": "auth",
	"SupportSessionService": "auth", "UserService": "auth", "WorkspaceService": "auth", "CatalogStatusService": "catalog", "ModelService": "catalog",
	"EngineService": "dashboard", "ProcessService": "dashboard", "SummaryService": "dashboard"}

// startForwarder passes every call, byte for byte, to the process that has the service, and returns its answer: both
// fronts see what the real services send.
func startForwarder(addresses map[string]string) (string, error) {
	connections := map[string]*grpc.ClientConn{}
	for name, address := range addresses {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(16<<20)))
		if err != nil {
			return "", err
		}
		connections[name] = connection
	}
	forward := func(_ any, stream grpc.ServerStream) error {
		full, _ := grpc.MethodFromServerStream(stream)
		service := strings.TrimPrefix(path.Dir(full), "/tollgate.admin.v1.")
		home := homes[service]
		if home == "" {
			home = "billing"
		}
		incoming, _ := metadata.FromIncomingContext(stream.Context())
		out := metadata.MD{}
		for key, values := range incoming {
			if !strings.HasPrefix(key, ":") && !strings.HasPrefix(key, "grpc-") && key != "content-type" && key != "user-agent" && key != "te" {
				out[key] = values
			}
		}
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		call, err := connections[home].NewStream(metadata.NewOutgoingContext(stream.Context(), out), &grpc.StreamDesc{ServerStreams: true}, full)
		if err != nil {
			return err
		}
		if err := call.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_ = call.CloseSend()
		for sent := false; ; {
			var answer []byte
			err := call.RecvMsg(&answer)
			if header, failed := call.Header(); !sent && failed == nil {
				delete(header, "content-type")
				_ = stream.SetHeader(header)
				sent = true
			}
			stream.SetTrailer(call.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := stream.SendMsg(&answer); err != nil {
				return err
			}
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(forward), grpc.MaxRecvMsgSize(16<<20))
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}
