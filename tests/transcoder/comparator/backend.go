package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"net"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// startBackend serves every method: the answer is a function of the request and of the metadata "script", which is a
// list like "fill=7;code=5;details=1;headers=1;messages=2". The answer contains the request's digest and the metadata.
func startBackend() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(handle),
		grpc.MaxRecvMsgSize(16<<20))
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}

// rawCodec passes serialised messages.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) {
	return *v.(*[]byte), nil
}
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}

func script(md metadata.MD) map[string]int {
	steps := map[string]int{}
	for _, text := range md.Get("script") {
		for _, step := range strings.Split(text, ";") {
			name, value, _ := strings.Cut(step, "=")
			steps[name], _ = strconv.Atoi(value)
		}
	}
	return steps
}

func newMessage(md protoreflect.MessageDescriptor) protoreflect.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	if err != nil {
		panic(err)
	}
	return mt.New()
}

func handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	name := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return status.Error(codes.Unimplemented, full)
	}
	method := descriptor.(protoreflect.MethodDescriptor)
	var raw []byte
	if err := stream.RecvMsg(&raw); err != nil {
		return err
	}
	request := newMessage(method.Input())
	if err := proto.Unmarshal(raw, request.Interface()); err != nil {
		return status.Errorf(codes.Internal, "request: %v", err)
	}
	canonical, _ := proto.MarshalOptions{Deterministic: true}.Marshal(request.Interface())
	digest := sha256.Sum256(canonical)
	md, _ := metadata.FromIncomingContext(stream.Context())
	steps := script(md)

	text := hex.EncodeToString(canonical)
	if len(text) > 1500 {
		text = text[:1500]
	}
	header := metadata.Pairs("x-method", name, "x-request", hex.EncodeToString(digest[:]), "x-request-bytes", text,
		"x-metadata", echoed(md))
	if steps["headers"] > 0 {
		header.Append("x-many", "one", "two")
		header.Append("x-data-bin", "\x41\x42")
		header.Append("x-spaces", "a  b")
		stream.SetTrailer(metadata.Pairs("x-after", "value", "x-after", "second", "x-other", "more"))
	}
	if steps["noheader"] == 0 {
		if err := stream.SendHeader(header); err != nil {
			return err
		}
	}
	failure := func() error { return fail(steps) }
	code := steps["code"]
	messages := 1
	if method.IsStreamingServer() {
		messages = steps["messages"]
	}
	if code != 0 && (!method.IsStreamingServer() || messages == 0) {
		return failure()
	}
	for i := 0; i < messages; i++ {
		answer := newMessage(method.Output())
		seed := int64(steps["fill"])
		if seed != 0 {
			fill(answer, rand.New(rand.NewSource(seed+int64(digest[0])+int64(i))), 0)
		}
		if steps["broken"] > 0 {
			breakMessage(answer, steps["broken"])
		}
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(answer.Interface())
		if err != nil {
			return status.Errorf(codes.Internal, "answer: %v", err)
		}
		if err := stream.SendMsg(&bytes); err != nil {
			return err
		}
	}
	if code != 0 {
		return failure()
	}
	return nil
}

// echoed is the metadata that both fronts must forward equally. It excludes what the two gRPC libraries add, and
// credentials, which our front keeps.
func echoed(md metadata.MD) string {
	kept := map[string][]string{}
	for key, values := range md {
		switch key {
		case ":authority", "content-type", "user-agent", "te", "authorization", "grpcgateway-authorization",
			"grpcgateway-cookie", "script":
			continue
		}
		if strings.HasPrefix(key, "grpc-") {
			continue
		}
		for _, value := range values {
			kept[key] = append(kept[key], strconv.QuoteToASCII(value))
		}
	}
	text, _ := json.Marshal(kept)
	return string(text)
}

func fail(steps map[string]int) error {
	st := &spb.Status{Code: int32(steps["code"]), Message: "it failed: \"quoted\" <b> & \u2028 é"}
	add := func(message proto.Message) {
		packed, err := anypb.New(message)
		if err != nil {
			panic(err)
		}
		st.Details = append(st.Details, packed)
	}
	switch steps["details"] {
	case 1:
		add(&errdetails.ErrorInfo{Reason: "REASON", Domain: "tollgate", Metadata: map[string]string{"b": "2", "a": "1"}})
	case 2:
		add(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "a.b", Description: "wrong"}}})
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(1500000000)})
	case 3:
		st.Details = append(st.Details, &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte{1}})
	case 4:
		add(durationpb.New(-500000000))
	}
	return status.ErrorProto(st)
}

var texts = []string{"", "text", "<b>&amp;</b>", "\u2028\u2029", "quote\"back\\slash", "\x00\x01\b\f\n\r\t\x1f\x7f", "é€😀", "/a:b"}
var ints = []int64{0, 1, -1, math.MaxInt32, math.MinInt32, 1 << 53, math.MaxInt64, math.MinInt64, 42}
// fill sets about two thirds of the fields to awkward values.
func fill(m protoreflect.Message, random *rand.Rand, depth int) {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		set(m, "seconds", protoreflect.ValueOfInt64([]int64{0, -1, 1700000000, 253402300799, -62135596800}[random.Intn(5)]))
		set(m, "nanos", protoreflect.ValueOfInt32([]int32{0, 1, 1000, 500000000, 999999999}[random.Intn(5)]))
		return
	case "google.protobuf.Duration":
		sign := int64(random.Intn(2)*2 - 1)
		set(m, "seconds", protoreflect.ValueOfInt64(sign*[]int64{0, 1, 315576000000}[random.Intn(3)]))
		set(m, "nanos", protoreflect.ValueOfInt32(int32(sign)*[]int32{0, 1, 1000, 500000000, 999999999}[random.Intn(5)]))
		return
	case "google.protobuf.FieldMask":
		list := m.Mutable(m.Descriptor().Fields().ByName("paths")).List()
		for _, path := range []string{"display_name", "a.b_c", "limits"}[:random.Intn(4)] {
			list.Append(protoreflect.ValueOfString(path))
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := 0; i < fields.Len(); i++ {
		field := fields.Get(i)
		if random.Intn(3) == 0 {
			continue
		}
		message := field.Message() != nil
		if message && depth > 2 {
			continue
		}
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil && depth > 1 {
				continue
			}
			entries := m.Mutable(field).Map()
			for n := random.Intn(4); n > 0; n-- {
				key := scalar(field.MapKey(), random).MapKey()
				if field.MapValue().Message() != nil {
					fill(entries.Mutable(key).Message(), random, depth+1)
				} else {
					entries.Set(key, scalar(field.MapValue(), random))
				}
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for n := random.Intn(3); n > 0; n-- {
				if message {
					fill(list.AppendMutable().Message(), random, depth+1)
				} else {
					list.Append(scalar(field, random))
				}
			}
		case message:
			fill(m.Mutable(field).Message(), random, depth+1)
		default:
			m.Set(field, scalar(field, random))
		}
	}
}

func set(m protoreflect.Message, name string, value protoreflect.Value) {
	m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), value)
}

func scalar(field protoreflect.FieldDescriptor, random *rand.Rand) protoreflect.Value {
	n := ints[random.Intn(len(ints))]
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.Intn(2) == 0)
	case protoreflect.EnumKind:
		if random.Intn(4) == 0 {
			return protoreflect.ValueOfEnum(77)
		}
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(random.Intn(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(texts[random.Intn(len(texts))]))
	default:
		return protoreflect.ValueOfString(texts[random.Intn(len(texts))])
	}
}

// breakMessage makes an answer that JSON cannot represent, where the type has a field for it.
func breakMessage(m protoreflect.Message, kind int) {
	name := map[int]string{1: "timestamp", 2: "duration", 3: "mask"}[kind]
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if field == nil {
		return
	}
	inner := m.Mutable(field).Message()
	switch kind {
	case 1:
		set(inner, "seconds", protoreflect.ValueOfInt64(253402300800))
	case 2:
		set(inner, "seconds", protoreflect.ValueOfInt64(1))
		set(inner, "nanos", protoreflect.ValueOfInt32(-1))
	case 3:
		inner.Mutable(inner.Descriptor().Fields().ByName("paths")).List().Append(protoreflect.ValueOfString("aB"))
	}
}

// methods are the methods of our packages, in the order of registration.
func methods() []protoreflect.MethodDescriptor {
	byFile := map[string]protoreflect.FileDescriptor{}
	var names []string
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(string(file.Package()), "tollgate.") {
			byFile[file.Path()] = file
			names = append(names, file.Path())
		}
		return true
	})
	sort.Strings(names)
	var all []protoreflect.MethodDescriptor
	for _, name := range names {
		services := byFile[name].Services()
		for i := 0; i < services.Len(); i++ {
			for j := 0; j < services.Get(i).Methods().Len(); j++ {
				all = append(all, services.Get(i).Methods().Get(j))
			}
		}
	}
	if len(all) == 0 {
		panic(fmt.Sprint("no methods are linked"))
	}
	return all
}
