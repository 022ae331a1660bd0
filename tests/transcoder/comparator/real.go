package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// realComparison compares the answers of the real services through both fronts.
type realComparison struct {
	theirs, ours *client
	first        string  // the workspace with the most data
	names        map[string]bool  // names of resources, seen in answers
	tokens       map[string]bool // requests for a next page
	seen         map[string]bool // requests that were made
	read         map[string]int  // routes: answers with 200
	refused      map[string]int  // routes: errors
	moving       map[string]bool  // routes with answers that change all the time
	compared     int
	different    int
}

func (c *realComparison) compare(b binding, r request) {
	id := fmt.Sprint(r.method, " ", r.target, " ", r.headers, " ", r.body)
	if c.seen[id] {
		return
	}
	c.seen[id] = true
	route := b.http + " " + b.template
	var found []string
	var ours *response
	// What changes meanwhile, a time or a counter, is asked for again.
	for attempt := 0; attempt < 12; attempt++ {
		a, errA := c.theirs.do(r)
		o, errB := c.ours.do(r)
		if errA != nil || errB != nil {
			found = []string{fmt.Sprintf("errors: theirs %v, ours %v", errA, errB)}
			break
		}
		ours = o
		if found = differences(r, a, o); len(found) == 0 {
			break
		}
		if r.method == "GET" && len(digits(a, o)) == 0 && attempt > 5 {
			c.moving[route] = true
			found = nil
			break
		}
		if r.method != "GET" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.compared++
	if len(found) > 0 {
		c.different++
		fmt.Printf("%s %q %q\n  %s\n", r.method, r.target, r.body, strings.Join(found, "\n  "))
		return
	}
	if ours.status == 200 {
		c.read[route]++
		c.collect(b, r, ours)
	} else {
		c.refused[route]++
	}
}

var digit = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// digits compares two answers without their numbers.
func digits(theirs, ours *response) string {
	a, o := *theirs, *ours
	a.body, o.body = digit.ReplaceAll([]byte(compact(a.body)), []byte("0")), digit.ReplaceAll([]byte(compact(o.body)), []byte("0"))
	return sameBody(&a, &o)
}

func (c *realComparison) make(targets map[string]string) error {
	for target, body := range targets {
		method, target, found := strings.Cut(target, " ")
		if !found {
			method, target = "POST", method
		}
		answer, err := c.theirs.do(request{method, target, nil, body})
		if err != nil {
			return err
		}
		if answer.status != 200 {
			return fmt.Errorf("%s %s: %d %s", method, target, answer.status, answer.body)
		}
	}
	return nil
}

// collect remembers the names of resources, and the next page.
func (c *realComparison) collect(b binding, r request, answer *response) {
	var tree any
	if json.Unmarshal(answer.body, &tree) != nil {
		return
	}
	var walk func(any)
	walk = func(node any) {
		switch value := node.(type) {
		case map[string]any:
			for key, inner := range value {
				if text, ok := inner.(string); ok && text != "" && (key == "name" || key == "workspace" || key == "user") {
					c.names[text] = true
				}
				walk(inner)
			}
		case []any:
			for _, inner := range value {
				walk(inner)
			}
		}
	}
	walk(tree)
	if top, ok := tree.(map[string]any); ok && r.method == "GET" {
		if token, _ := top["nextPageToken"].(string); token != "" && len(c.tokens) < 200 {
			c.tokens[token] = true
			c.compare(b, request{"GET", strings.SplitN(r.target, "?", 2)[0] + "?page_size=1&page_token=" + token, nil, ""})
		}
	}
}

var wildcard = regexp.MustCompile(`\{(name|parent)=([^}]*)\}`)

// targets returns the paths of a template for the known names, and one path that never exists.
func (c *realComparison) targets(b binding, most int) []string {
	match := wildcard.FindStringSubmatch(b.template)
	if match == nil {
		return []string{b.path("nope", "no/such")}
	}
	pattern := "^" + strings.NewReplacer("/**", "/.+", "*", "[^/]+").Replace(match[2]) + "$"
	matches := regexp.MustCompile(pattern)
	names := map[string]bool{}
	for name := range c.names {
		// A resource without a name in answers, such as a balance, is found by what it belongs to.
		if segments := strings.Split(match[2], "/"); len(segments)%2 == 1 && len(segments) > 1 {
			name += "/" + segments[len(segments)-1]
		}
		if matches.MatchString(name) {
			names[name] = true
		}
	}
	var all []string
	for name := range names {
		all = append(all, strings.Replace(b.template, match[0], name, 1))
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := strings.Contains(all[i], c.first), strings.Contains(all[j], c.first)
		return a && !b || a == b && all[i] < all[j]
	})
	if len(all) > most {
		all = all[:most]
	}
	return append(all, b.path("nope", "no/such"))
}

var readQueries = []string{"", "page_size=1", "page_size=-1", "pageSize=100000", "page_token=nope", "filter=nope", "filter=state%20%3D", "filter=%22", "order_by=nope", "view=77",
	"start_time=2026-01-01T00:00:00Z&end_time=2025-01-01T00:00:00Z", "end_time=2026-13-01T00:00:00Z", "unknown=1", "page_size=x"}

func compareReal(program string, front func(backend string) (string, func() error)) error {
	started, err := startCluster(program)
	if err != nil {
		return err
	}
	if err := started.use(); err != nil {
		return err
	}
	backend, err := startForwarder(started.Admin)
	if err != nil {
		return err
	}
	gateway, err := startGateway(backend)
	if err != nil {
		return err
	}
	address, stopFront := front(backend)
	c := &realComparison{first: "workspaces/" + started.Of["good"], theirs: &client{address: gateway}, ours: &client{address: address}, names: map[string]bool{}, tokens: map[string]bool{},
		seen: map[string]bool{}, read: map[string]int{}, refused: map[string]int{}, moving: map[string]bool{}}
	if err := c.make(started.made()); err != nil {
		return err
	}
	reads := 0
	// The second round knows what the first one has found.
	for round := 0; round < 3; round++ {
		reads = 0
		for _, method := range methods() {
			if method.ParentFile().Package() != "tollgate.admin.v1" {
				continue
			}
			for _, b := range bindings(method) {
				if b.http != "GET" {
					continue
				}
				reads++
				for _, target := range c.targets(b, 6) {
					for _, query := range readQueries {
						c.compare(b, request{"GET", strings.TrimSuffix(target+"?"+query, "?"), nil, ""})
					}
				}
			}
		}
	}
	c.mutations()
	if err := errors.Join(stopFront(), started.stop()); err != nil {
		return err
	}
	return c.report(reads)
}

// mutations sends calls that are refused: for resources that do not exist, or without required fields.
func (c *realComparison) mutations() {
	for _, method := range methods() {
		if method.ParentFile().Package() != "tollgate.admin.v1" {
			continue
		}
		for _, b := range bindings(method) {
			if b.http == "GET" {
				continue
			}
			target := b.path("nope", "no/such")
			long := strings.Repeat("x", 200)
			bodies := []string{"[]", "{", `{"requestId":"` + long + `"}`, `{"unknown":{}}`, `{"requestId":5}`, "{}"}
			if b.body == "" {
				bodies = []string{""}
			}
			if !strings.Contains(b.template, "{") {
				bodies = bodies[:2]  // a resource without a name in the request would be made twice
			}
			for _, body := range bodies {
				for _, query := range []string{"request_id=" + long, "update_mask=nope", "request_id=%00"} {
					c.compare(b, request{b.http, target + "?" + query, nil, body})
				}
			}
		}
	}
}

func (c *realComparison) report(reads int) error {
	missing := 0
	for _, method := range methods() {
		if method.ParentFile().Package() != "tollgate.admin.v1" {
			continue
		}
		for _, b := range bindings(method) {
			route := b.http + " " + b.template
			if c.read[route]+c.refused[route] == 0 {
				missing++
				fmt.Printf("%s was not compared\n", route)
			}
		}
	}
	var moving []string
	for route := range c.moving {
		moving = append(moving, route)
	}
	sort.Strings(moving)
	fmt.Printf("real services: %d requests to %d routes compared, %d differ; %d of %d read routes answered with data; numbers that always change: %q\n",
		c.compared, len(c.read)+len(c.refused), c.different, readRoutes(c.read), reads, moving)
	if os.Getenv("TOLLGATE_COMPARE_SHOW") != "" {
		for _, method := range methods() {
			for _, b := range bindings(method) {
				if route := b.http + " " + b.template; b.http == "GET" && c.read[route] == 0 {
					fmt.Printf("no data: %s\n", route)
				}
			}
		}
	}
	if c.different > 0 || missing > 0 || len(moving) > 8 || readRoutes(c.read) < 48 {
		return status.Error(codes.FailedPrecondition, "the real services are not answered for equally, or too few of them answer")
	}
	return nil
}

func readRoutes(routes map[string]int) int {
	count := 0
	for route := range routes {
		if strings.HasPrefix(route, "GET ") {
			count++
		}
	}
	return count
}
