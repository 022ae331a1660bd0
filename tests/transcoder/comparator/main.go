// The comparator: a grpc-gateway generated from our protos and our own front, before one backend. Both get the same
// requests; differences that docs/design/transcoder.md does not list are printed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
)

type response struct {
	status  int
	headers http.Header
	body    []byte
	trailer http.Header
}

// client sends bytes unchanged and keeps its connection while it can.
type client struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

func (c *client) do(r request) (*response, error) {
	for attempt := 0; ; attempt++ {
		fresh := c.conn == nil
		if fresh {
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				return nil, err
			}
			c.conn, c.reader = conn, bufio.NewReader(conn)
		}
		answer, err := c.try(r)
		if err == nil {
			return answer, nil
		}
		c.conn.Close()
		c.conn = nil
		if fresh || attempt > 0 {
			return nil, err
		}
	}
}

func (c *client) try(r request) (*response, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: front.example\r\n", r.method, r.target)
	for _, header := range r.headers {
		out.WriteString(header + "\r\n")
	}
	if r.body != "" || r.method == "POST" || r.method == "PUT" || r.method == "PATCH" {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(r.body))
	}
	out.WriteString("\r\n" + r.body)
	_ = c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.conn.Write(out.Bytes()); err != nil {
		return nil, err
	}
	got, err := http.ReadResponse(c.reader, &http.Request{Method: r.method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	got.Body.Close()
	if got.Close {
		c.conn.Close()
		c.conn = nil
	}
	return &response{got.StatusCode, got.Header, body, got.Trailer}, nil
}

// libraryText finds texts of Go's libraries; they are not compared from there on.
var libraryText = regexp.MustCompile("proto:|invalid character|unexpected EOF|unexpected end of JSON|strconv\\.|parsing time|time: |json: |illegal base64|mime: |exceeded max depth|syntax error|grpc: |invalid google\\.protobuf|before 0001|invalid nesting|jsontext: |context deadline|received message")

func sameMessage(theirs, ours string) bool {
	if theirs == ours {
		return true
	}
	at := libraryText.FindStringIndex(theirs)
	return at != nil && strings.HasPrefix(ours, theirs[:at[0]])
}

type errorBody struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
}

func compact(body []byte) string {
	var out bytes.Buffer
	for _, line := range bytes.Split(body, []byte("\n")) {
		var one bytes.Buffer
		if json.Compact(&one, line) == nil {
			out.Write(one.Bytes())
		} else {
			out.Write(line)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func sameBody(theirs, ours *response) string {
	a, b := compact(theirs.body), compact(ours.body)
	if a == b {
		return ""
	}
	unwrap := func(text string) string {
		text = strings.TrimSpace(text)
		if last := strings.LastIndexByte(text, '\n'); last >= 0 {
			text = text[last+1:]
		}
		if strings.HasPrefix(text, `{"error":`) {
			return strings.TrimSuffix(strings.TrimPrefix(text, `{"error":`), "}")
		}
		return text
	}
	var x, y errorBody
	if json.Unmarshal([]byte(unwrap(a)), &x) == nil && json.Unmarshal([]byte(unwrap(b)), &y) == nil && x.Code != 0 {
		if x.Code == y.Code && string(x.Details) == string(y.Details) && sameMessage(x.Message, y.Message) {
			return ""
		}
	}
	return fmt.Sprintf("body\n    theirs %.600q\n    ours   %.600q", a, b)
}

// compared returns the headers that both must send equally, as texts.
func compared(headers http.Header, prefix string) []string {
	var all []string
	for name, values := range headers {
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, prefix+"Grpc-") || name == prefix+"Content-Type" {
			continue
		}
		all = append(all, fmt.Sprintf("%s=%q", name, values))
	}
	sort.Strings(all)
	return all
}

func differences(r request, theirs, ours *response) []string {
	// What Go's HTTP server refuses before the gateway sees it.
	if theirs.status == 400 && strings.HasPrefix(theirs.headers.Get("Content-Type"), "text/plain") {
		if ours.status < 400 || ours.status > 501 {
			return []string{fmt.Sprintf("status %d, ours %d", theirs.status, ours.status)}
		}
		return nil
	}
	// Text that is not UTF-8, which Go's gRPC library refuses to send.
	if theirs.status == 500 && ours.status == 400 && bytes.Contains(theirs.body, []byte("UTF-8")) && bytes.Contains(ours.body, []byte("is not UTF-8")) {
		return nil
	}
	var all []string
	if theirs.status != ours.status {
		all = append(all, fmt.Sprintf("status %d, ours %d", theirs.status, ours.status))
	}
	if a, b := theirs.headers.Values("Content-Type"), ours.headers.Values("Content-Type"); fmt.Sprint(a) != fmt.Sprint(b) {
		all = append(all, fmt.Sprintf("content type %q, ours %q", a, b))
	}
	// grpc-gateway sends the metadata of an answer that JSON cannot hold twice: once for it, once for the error.
	if theirs.status == 500 {
		for name, values := range theirs.headers {
			if half := len(values) / 2; half > 0 && fmt.Sprint(values[:half]) == fmt.Sprint(values[half:]) {
				theirs.headers[name] = values[:half]
			}
		}
	}
	for _, prefix := range []string{"Grpc-Metadata-", "Www-Authenticate"} {
		if a, b := compared(theirs.headers, prefix), compared(ours.headers, prefix); fmt.Sprint(a) != fmt.Sprint(b) {
			all = append(all, fmt.Sprintf("headers\n    theirs %s\n    ours   %s", a, b))
		}
	}
	if a, b := compared(theirs.trailer, "Grpc-Trailer-"), compared(ours.trailer, "Grpc-Trailer-"); fmt.Sprint(a) != fmt.Sprint(b) {
		all = append(all, fmt.Sprintf("trailers\n    theirs %s\n    ours   %s", a, b))
	}
	if body := sameBody(theirs, ours); body != "" {
		all = append(all, body)
	}
	return all
}

// random tells whether the order of a map decides: with several query values, and with a form that is posted to a path
// with GET and other routes.
func random(r request) bool {
	return strings.Contains(r.target, "&") || strings.Contains(strings.Join(r.headers, "\n"), "form-urlencoded")
}

func startGateway(backend string) (string, error) {
	connection, err := grpc.NewClient(backend, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	mux := runtime.NewServeMux()
	if err := registerAll(context.Background(), mux, connection); err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = (&http.Server{Handler: mux}).Serve(listener) }()
	return listener.Addr().String(), nil
}

func main() {
	only := flag.String("only", "", "compare only requests whose target has this text")
	show := flag.Int("show", 40, "differences to print")
	real := flag.String("real", "", "tollgate-test-cluster: compare before the real services, not before the scripted backend")
	flag.Parse()
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: comparator [-only TEXT] [-show N] FRONT-PROGRAM")
		os.Exit(2)
	}
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	// Our front ends when its input does, also if this program is killed.
	startFront := func(backend string) (string, func() error) {
		front := exec.Command(flag.Arg(0), backend)
		front.Stderr = os.Stderr
		input, err := front.StdinPipe()
		check(err)
		output, err := front.StdoutPipe()
		check(err)
		check(front.Start())
		address, err := bufio.NewReader(output).ReadString('\n')
		check(err)
		return strings.TrimSpace(address), func() error {
			input.Close()
			return front.Wait()
		}
	}
	if *real != "" {
		check(compareReal(*real, startFront))
		return
	}
	backend, err := startBackend()
	check(err)
	gateway, err := startGateway(backend)
	check(err)
	address, stopFront := startFront(backend)

	var chosen []request
	perMethod := map[string]int{}
	for _, method := range methods() {
		for _, b := range bindings(method) {
			cases := b.cases()
			perMethod[b.http+" "+b.template] = len(cases)
			least := 100
			if b.body != "" {
				least = 250
			}
			if len(cases) < least {
				fmt.Fprintf(os.Stderr, "%s %s has only %d cases\n", b.http, b.template, len(cases))
				os.Exit(1)
			}
			for _, r := range cases {
				if strings.Contains(r.target, *only) {
					chosen = append(chosen, r)
				}
			}
		}
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	next, different := 0, 0
	groups := map[string]int{}
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			theirs, ours := &client{address: gateway}, &client{address: address}
			for {
				mutex.Lock()
				at := next
				next++
				mutex.Unlock()
				if at >= len(chosen) {
					return
				}
				r := chosen[at]
				a, errA := theirs.do(r)
				b, errB := ours.do(r)
				var found []string
				if errA != nil || errB != nil {
					if fmt.Sprint(errA) != fmt.Sprint(errB) {
						found = []string{fmt.Sprintf("errors: theirs %v, ours %v", errA, errB)}
					}
				} else {
					found = differences(r, a, b)
				}
				// Where Go walks a map, grpc-gateway answers at random: one of its answers is enough.
				for again := 0; len(found) > 0 && again < 30 && random(r); again++ {
					if a, errA = theirs.do(r); errA == nil && errB == nil {
						found = differences(r, a, b)
					}
				}
				if len(found) == 0 {
					continue
				}
				mutex.Lock()
				different++
				groups[strings.SplitN(found[0], "\n", 2)[0]]++
				if different <= *show {
					fmt.Printf("%s %q %q %.300q\n  %s\n", r.method, r.target, r.headers, r.body, strings.Join(found, "\n  "))
				}
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	if err := stopFront(); err != nil {
		fmt.Printf("the front ended badly: %v\n", err)
		different++
	}
	fmt.Printf("%d requests to %d routes compared, %d differ\n", len(chosen), len(perMethod), different)
	if different > 0 {
		for text, count := range groups {
			fmt.Printf("%6d %s\n", count, text)
		}
		os.Exit(1)
	}
}
