package main

import (
	"fmt"
	"net/url"
	"sort"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A request as both fronts get it, byte for byte.
type request struct {
	method  string
	target  string
	headers []string // "Name: value"
	body    string
}

type binding struct {
	method       protoreflect.MethodDescriptor
	http         string
	template     string
	body         string
	responseBody string
}

func bindings(method protoreflect.MethodDescriptor) []binding {
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return nil
	}
	var all []binding
	for _, one := range append([]*annotations.HttpRule{rule}, rule.AdditionalBindings...) {
		b := binding{method: method, body: one.Body, responseBody: one.ResponseBody}
		switch pattern := one.Pattern.(type) {
		case *annotations.HttpRule_Get:
			b.http, b.template = "GET", pattern.Get
		case *annotations.HttpRule_Put:
			b.http, b.template = "PUT", pattern.Put
		case *annotations.HttpRule_Post:
			b.http, b.template = "POST", pattern.Post
		case *annotations.HttpRule_Delete:
			b.http, b.template = "DELETE", pattern.Delete
		case *annotations.HttpRule_Patch:
			b.http, b.template = "PATCH", pattern.Patch
		}
		all = append(all, b)
	}
	return all
}

// path fills the wildcards of the template: value for "*", deep for "**".
func (b binding) path(value, deep string) string {
	var out strings.Builder
	rest := b.template
	fillIn := func(segments string) string {
		parts := strings.Split(segments, "/")
		for i, part := range parts {
			if part == "*" {
				parts[i] = value
			} else if part == "**" {
				parts[i] = deep
			}
		}
		return strings.Join(parts, "/")
	}
	for {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			out.WriteString(fillIn(rest))
			return out.String()
		}
		closing := strings.IndexByte(rest, '}')
		out.WriteString(fillIn(rest[:open]))
		variable := rest[open+1 : closing]
		if _, segments, found := strings.Cut(variable, "="); found {
			out.WriteString(fillIn(segments))
		} else {
			out.WriteString(value)
		}
		rest = rest[closing+1:]
	}
}

func corpus() []request {
	var all []request
	for _, method := range methods() {
		for _, b := range bindings(method) {
			all = append(all, b.cases()...)
		}
	}
	return all
}

// Values of path segments: valid ones for each kind, and traps.
var segments = []string{"a1", "42", "-7", "true", "T", "1.5", "NaN", "inf", "0x10", "1_000", "012", "+5", "99999999999", "18446744073709551615",
	"COLOR_RED", "1", "9", "-3", "YQ==", "YQ", "_-8", "+/8=", "%2B%2F8%3D", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5%2B01:00", "1.5s", "1h", "3600s",
	"1,2,3", "1,,2", "COLOR_RED,1", "a,b,,c", "%22quoted%22", "a+b", "a%20b", "a%2Fb", "%252F", "a1%3Aarchive", "a1:archive", "a1:", ":",
	"%E2%82%AC", "%ff", "%00", "a%3Fb%23c", "..", ".", "*", "**", "%7Bx%7D", "", "a;b", "a=b&c", "~!$'()@"}

func (b binding) cases() []request {
	var all []request
	plain := b.path("a1", "b/c")
	json := `{}`
	if b.body == "" {
		json = ""
	}
	add := func(method, target, body string, headers ...string) {
		all = append(all, request{method, target, headers, body})
	}
	// Paths.
	for _, value := range segments {
		add(b.http, b.path(value, value), json)
	}
	for _, deep := range []string{"", "/", "a", "a/b/c", "a//b", "x/:verb", "%2F"} {
		add(b.http, b.path("a1", deep), json)
	}
	for _, target := range []string{plain + "/", plain + "//", "/" + plain, plain + ":verb", plain + ":nope", plain + "%3Averb",
		plain + "/:verb", plain + "/extra", strings.TrimSuffix(plain, "a1"), strings.Replace(plain, "/v1/", "/v2/", 1),
		strings.Replace(plain, "/v1/", "//v1/", 1), strings.ToUpper(plain), plain + "%zz", plain + "%", plain + "?", strings.Replace(plain, "/v1", "%2Fv1", 1)} {
		add(b.http, target, json)
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get", "FOO"} {
		if method != b.http {
			add(method, plain, "")
			add(method, plain+"/extra/much", "")
		}
	}
	// Answers.
	for seed := 1; seed <= 12; seed++ {
		add(b.http, plain, json, fmt.Sprintf("Grpc-Metadata-Script: fill=%d;headers=%d;messages=%d", seed, seed%2, seed%4))
	}
	for broken := 1; broken <= 5; broken++ {
		add(b.http, plain, json, fmt.Sprintf("Grpc-Metadata-Script: broken=%d;messages=1", broken))
	}
	for code := 1; code <= 17; code++ {
		add(b.http, plain, json, fmt.Sprintf("Grpc-Metadata-Script: code=%d;details=%d", code, code%5))
		add(b.http, plain, json, fmt.Sprintf("Grpc-Metadata-Script: code=%d;messages=2;headers=1;fill=3", code), "TE: trailers")
	}
	add(b.http, plain, json, "Grpc-Metadata-Script: code=16;details=3")
	add(b.http, plain, json, "Grpc-Metadata-Script: code=5;noheader=1;headers=1", "TE: Trailers")
	add(b.http, plain, json, "Grpc-Metadata-Script: headers=1;messages=2", "TE: deflate, trailers")
	// Headers.
	for _, header := range []string{"Grpc-Timeout: 5S", "Grpc-Timeout: 1H", "Grpc-Timeout: 3M", "Grpc-Timeout: 9000m", "Grpc-Timeout: 5", "Grpc-Timeout: x", "Grpc-Timeout: S",
		"Grpc-Timeout: -5S", "Grpc-Timeout: 5s", "Grpc-Timeout: 99999999999999999999S", "Grpc-Timeout: 9999999999999H", "Grpc-Timeout: 0S", "Grpc-Timeout: 5 S", "Grpc-Timeout: +5S",
		"Grpc-Metadata-X: y", "grpc-metadata-x: y", "Grpc-Metadata-grpcgateway-x: y", "Grpc-Metadata-Grpcgateway-Origin: y",
		"Grpc-Metadata-X-Forwarded-For: 1.2.3.4", "Grpc-Metadata-X-Forwarded-Host: h", "Grpc-Metadata-X!: y", "Grpc-Metadata-X_y.z: y",
		"Grpc-Metadata-X: \xc3\xa9", "Grpc-Metadata-X: a\tb", "Grpc-Metadata-X-Bin: QUI=", "Grpc-Metadata-X-Bin: QUI", "Grpc-Metadata-X-Bin: Q", "Grpc-Metadata-X-Bin: !!!!",
		"Grpc-Metadata-X-Bin: _-8=", "Grpc-Metadata-X-Bin: ", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: 10.0.0.1, 10.0.0.2", "X-Forwarded-Host: public.example", "X-Forwarded-Host: \xc3\xa9",
		"Accept: text/html", "Accept-Charset: utf-8", "Accept-Language: de", "Accept-Ranges: none", "Cache-Control: no-cache", "Content-Type: text/plain", "Date: x", "From: a@b",
		"If-Match: x", "If-Modified-Since: x", "If-None-Match: x", "If-Schedule-Tag-Match: x", "If-Unmodified-Since: x", "Max-Forwards: 1", "Origin: http://x", "Pragma: x",
		"Referer: x", "User-Agent: me/1", "Via: x", "Warning: x", "X-Custom: dropped", "Content-Type: ;;", "Content-Type: multipart/form-data"} {
		add(b.http, plain, json, header)
	}
	add(b.http, plain, json, "X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: 10.0.0.2", "Grpc-Metadata-A: 1", "Grpc-Metadata-A: 2")
	// Queries and bodies.
	for _, query := range queries(b.method.Input()) {
		add(b.http, plain+"?"+query, json)
	}
	// Forms.
	form := "Content-Type: application/x-www-form-urlencoded"
	for _, body := range []string{"", "page_size=3", "a;b", "%zz", "name=x&page_size=1", "text=a+b"} {
		add("POST", plain, body, form)
		add("POST", plain+"?page_size=4", body, form)
		add("POST", plain, body, form+"; charset=utf-8")
		for _, method := range []string{"put", "PATCH", "Delete", "get", "nope"} {
			add("POST", plain, body, form, "X-HTTP-Method-Override: "+method)
		}
		add("PUT", plain, body, form)
	}
	add("POST", plain, "{}", "X-HTTP-Method-Override: put")
	if b.body == "" {
		return append(all, request{b.http, plain, nil, `{"ignored":`})
	}
	bodyType := b.method.Input()
	if b.body != "*" {
		bodyType = b.method.Input().Fields().ByName(protoreflect.Name(b.body)).Message()
	}
	for _, text := range genericBodies {
		add(b.http, plain, text)
	}
	if bodyType != nil {
		for _, text := range bodies(bodyType) {
			add(b.http, plain, text)
		}
		if b.http == "PATCH" {
			for _, text := range []string{"", "{}", `{"nope":1}`} {
				add(b.http, plain+"?update_mask=a,b_c,dE", text)
				add(b.http, plain+"?updateMask=", text)
			}
		}
	}
	return all
}

func queries(md protoreflect.MessageDescriptor) []string {
	all := []string{"nope=1", "nope", "=", "&&", "a;b", "a=1;b=2", "%zz=1", "x=%zz", "x=%", "name=other", "name", "nope.nope=1", "nope[k]=v", "[k]=v", "[]=", ".=", "..=1",
		"page_size=1&page_size=2", "page_size=1&pageSize=2", "page_size.x=1", "page_size[k]=1", "parent=%ff", "request_id=%ff", "page_token=a+b%20c%2B", "pageToken=%E2%82%AC", "filter=a%3D%22b%22"}
	addField := func(prefix string, field protoreflect.FieldDescriptor) {
		for _, value := range queryValues(field) {
			all = append(all, prefix+string(field.Name())+"="+url.QueryEscape(value))
		}
		sample := url.QueryEscape(queryValues(field)[0])
		name, jsonName := prefix+string(field.Name()), prefix+field.JSONName()
		all = append(all, jsonName+"="+sample, name+"="+sample+"&"+name+"="+sample, name+"="+sample+"&"+jsonName+"="+sample+"x", name+".nope=1", name+"[k]=v", name+"[1]=2",
			name+"[true]=1", name+"[k]=v&"+name+"[k]=w", name+"[a]=v&"+name+"[b]=w", strings.ToUpper(name)+"="+sample, name)
		if jsonName == name {
			all = all[:len(all)-9]
		}
	}
	fields := md.Fields()
	for i := 0; i < fields.Len(); i++ {
		field := fields.Get(i)
		addField("", field)
		if inner := field.Message(); inner != nil && !field.IsMap() && !field.IsList() && !strings.HasPrefix(string(inner.FullName()), "google.") && inner != md {
			for j := 0; j < inner.Fields().Len() && j < 12; j++ {
				addField(string(field.Name())+".", inner.Fields().Get(j))
			}
		}
	}
	oneofs := md.Oneofs()
	for i := 0; i < oneofs.Len(); i++ {
		if members := oneofs.Get(i).Fields(); members.Len() > 1 {
			for j := 0; j+1 < members.Len(); j++ {
				all = append(all, fmt.Sprintf("%s=1&%s=1", members.Get(0).Name(), members.Get(j+1).Name()))
			}
		}
	}
	return all
}

var integerTexts = []string{"5", "-5", "+5", "012", "0", "", " 5", "5 ", "0x10", "1_000", "1.0", "1e2", "2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807",
	"9223372036854775808", "18446744073709551615", "18446744073709551616", "x", "NaN"}
var boolTexts = []string{"true", "false", "1", "0", "t", "F", "TRUE", "False", "yes", "", "tRUE"}
var bytesTexts = []string{"YWI=", "YWI", "YQ==", "YQ", "_-8=", "+/8=", "_-8", "+_8=", "Y", "", "Y Q=", "YQ=", "+/9=", "YW\nI="}
var timeTexts = []string{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00,5Z", "2026-01-31T12:00:00.1234567890123Z", "2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00-23:59",
	"2026-01-31T12:00:00", "2026-01-31", "2026-02-30T12:00:00Z", "2024-02-29T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T23:59:60Z", "0001-01-01T00:00:00Z", "0000-12-31T23:59:59Z", "9999-12-31T23:59:59.999999999Z",
	"10000-01-01T00:00:00Z", "2026-01-31t12:00:00z", "2026-01-31T1:00:00Z", "2026-1-31T01:00:00Z", "2026-01-31T12:00:00+0100", "2026-01-31T12:00:00.Z", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00.123456789Z", "", "now"}
var durationTexts = []string{"1h30m", "1.5s", "-1.5s", "+1s", "0", "5", "3600s", "1s500ms", "1us", "1µs", "1ns", "1d", "", "s", ".5s", "1.s", ".s", "-", "9223372036s", "9223372037s", "2562047h47m16.854775807s", "1h-1m", "0.0000000001s", "315576000000s", "01s", "1 s", "-0s"}
var maskTexts = []string{"a", "a,b", "displayName", "display_name", "a.b", "", "a,", "*", "a b", "A"}
func queryValues(field protoreflect.FieldDescriptor) []string {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return boolTexts
	case protoreflect.EnumKind:
		return []string{string(field.Enum().Values().Get(0).Name()), "1", "-3", "0", "77", "NOPE", "", "+1", "1.0", strings.ToLower(string(field.Enum().Values().Get(0).Name()))}
	case protoreflect.StringKind:
		return []string{"text", "", "a b", "\xff", "é", "\x00"}
	case protoreflect.BytesKind:
		return bytesTexts
	case protoreflect.MessageKind:
		switch field.Message().Name() {
		case "Timestamp":
			return timeTexts
		case "Duration":
			return durationTexts
		case "FieldMask":
			return maskTexts
		}
		return []string{"", "{}", "x"}
	}
	return integerTexts
}

// Traps that do not depend on the type.
var genericBodies = []string{"", " \t\r\n", "{}", " {} ", "{} x", `{}{"a":1}`, "null", "[]", "1", `"x"`, "true", "{", "}", "{\"a\"", `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, "// c\n{}", "\xef\xbb\xbf{}",
	`{"nope":1}`, `{"nope":{"deep":[1,2,{"x":null}]}}`, `{"nope":1,"nope":2}`, `{"nope":01}`, `{"nope":1.}`, `{"nope":.5}`, `{"nope":+1}`, `{"nope":-}`, `{"nope":1e}`, `{"nope":1e400}`, `{"nope":NaN}`,
	"{\"nope\":\"\x01\"}", "{\"nope\":\"\xff\"}", `{"nope":"\ud800"}`, `{"nope":"\ud83d\ude00"}`, `{"nope":"\x"}`, `{"nope":"\u12"}`, "{\"nope\":\"\t\"}", `{"nope":tru}`, `{"nope":nulll}`,
	`{"nope":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", `{"nope":` + strings.Repeat("[", 12000) + strings.Repeat("]", 12000) + "}",
	"{\"\":1}", `{"@type":"x"}`, "\x00", "\u00a0{}", `{"a" 1}`, `{"a":1 "b":2}`, `[{}]`, `{"nope":[1,]}`, `{"nope":[,1]}`, `{"nope":"a` + "\n" + `b"}`}

var jsonIntegers = []string{"5", "-5", "5.0", "1e2", "1.5e1", "150e-1", "0.5", "-0", "0e5", "2147483647", "2147483648", "-2147483649", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1e99",
	`"5"`, `"-5"`, `"5.0"`, `"1e2"`, `"+5"`, `"05"`, `" 5"`, `"5 "`, `""`, `"5x"`, `"5,6"`, `"0x5"`, `"-0"`, `"5."`, `".5"`, `"1_0"`, "true", "null", "{}", "[]", "[5]", `"9223372036854775807"`, "1E2", "-1e0"}
var jsonBools = []string{"true", "false", `"true"`, "1", "0", "null", `""`, "[]"}
var jsonStrings = []string{`"text"`, `""`, "5", "true", "null", "[]", "{}", `"\u00e9\ud83d\ude00"`, `"\ud800"`, `"\u0000"`, "\"\xff\"", `"\/\b\f\n\r\t\"\\"`, `"<>&"`}
var jsonBytes = []string{`"YWI="`, `"YWI"`, `"_-8="`, `"+/8="`, `"+_8="`, `"+/9="`, `"Y"`, `""`, `"Y Q="`, "5", "null", `"YQ\n=="`, `"YQ="`}

func jsonValues(field protoreflect.FieldDescriptor) []string {
	quoted := func(texts []string) []string {
		var all []string
		for _, text := range texts {
			all = append(all, fmt.Sprintf("%q", text))
		}
		return append(all, "5", "null", "{}", "[]", "true", `{"seconds":5}`)
	}
	switch field.Kind() {
	case protoreflect.BoolKind:
		return jsonBools
	case protoreflect.EnumKind:
		return []string{`"` + string(field.Enum().Values().Get(field.Enum().Values().Len()-1).Name()) + `"`, "0", "1", "77", "-3", `"NOPE"`, `"1"`, `""`, "1.0", "1.5", "3000000000", "null", "true", "{}", "[]"}
	case protoreflect.StringKind:
		return jsonStrings
	case protoreflect.BytesKind:
		return jsonBytes
	case protoreflect.MessageKind:
		switch name := field.Message().Name(); name {
		case "Timestamp":
			return quoted(timeTexts)
		case "Duration":
			return quoted(append([]string{"1s", "1.5s", ".5s", "1.s", "+1s", "01s", "-0.5s", "315576000000s", "315576000001s", "0.0000000001s", "1", "1.123456789s", "s", "-s"}, durationTexts...))
		case "FieldMask":
			return quoted([]string{"a,bC", "", " ", "a_b", "*", "a,", ",a", "a b", "a.b", "aB.cD", "A", "a..b", "1a", "a1", "é", " a "})
		}
		return []string{"{}", "null", "[]", "1", `"x"`, "[{}]", `{"nope":1}`, `{"nope":{"a":1}}`}
	}
	return jsonIntegers
}

func bodies(md protoreflect.MessageDescriptor) []string {
	var all []string
	fields := md.Fields()
	for i := 0; i < fields.Len(); i++ {
		field := fields.Get(i)
		name := string(field.Name())
		object := func(value string) string { return `{"` + name + `":` + value + "}" }
		switch {
		case field.IsMap():
			for _, key := range []string{"a", "1", "-1", "true", "01", "+1", "1.0", "", "yes", "99999999999999999999", " 1"} {
				all = append(all, object(`{"`+key+`":`+jsonValues(field.MapValue())[0]+"}"))
			}
			for _, value := range jsonValues(field.MapValue()) {
				all = append(all, object(`{"1":`+value+"}"))
			}
			all = append(all, object(`{"a":"x","a":"y"}`), object(`{"1":"x","1":"y"}`), object("[]"), object("null"), object("{}"), object("5"), object(`[{"key":"a"}]`))
		case field.IsList():
			for _, value := range jsonValues(field) {
				all = append(all, object("["+value+"]"))
			}
			sample := jsonValues(field)[0]
			all = append(all, object("["+sample+","+sample+"]"), object(sample), object("null"), object("{}"), object("[[]]"), object("[null]"), object("["+sample+",null]"))
		default:
			for _, value := range jsonValues(field) {
				all = append(all, object(value))
			}
			sample := jsonValues(field)[0]
			all = append(all, `{"`+field.JSONName()+`":`+sample+"}", `{"`+name+`":`+sample+`,"`+name+`":`+sample+"}", `{"`+name+`":`+sample+`,"`+field.JSONName()+`":null}`,
				`{"`+strings.ToUpper(name)+`":`+sample+"}", `{"`+name[:1]+`\u00`+fmt.Sprintf("%02x", name[1])+name[2:]+`":`+sample+"}")
			if inner := field.Message(); inner != nil && !strings.HasPrefix(string(inner.FullName()), "google.") {
				for j := 0; j < inner.Fields().Len() && j < 6; j++ {
					leaf := inner.Fields().Get(j)
					if !leaf.IsMap() && !leaf.IsList() {
						all = append(all, object(`{"`+leaf.JSONName()+`":`+jsonValues(leaf)[0]+"}"))
					}
				}
				depth := 120
				if inner == md {
					all = append(all, strings.Repeat(`{"`+name+`":`, depth)+"{}"+strings.Repeat("}", depth))
				}
			}
		}
	}
	oneofs := md.Oneofs()
	for i := 0; i < oneofs.Len(); i++ {
		members := oneofs.Get(i).Fields()
		for j := 1; j < members.Len(); j++ {
			first, second := members.Get(0), members.Get(j)
			all = append(all, `{"`+string(first.Name())+`":`+jsonValues(first)[0]+`,"`+string(second.Name())+`":`+jsonValues(second)[0]+"}",
				`{"`+string(first.Name())+`":null,"`+string(second.Name())+`":`+jsonValues(second)[0]+"}")
		}
	}
	sort.Strings(all)
	return all
}
