// A place in a message that a value is written to.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <utility>

namespace tollgate::transcode {

namespace pb = google::protobuf;

// Writes one value of a field, by setting or appending.
class Slot {
 public:
  Slot(pb::Message& message, const pb::FieldDescriptor* field, bool add)
      : message_(message), access_(*message.GetReflection()), field_(field), add_(add) {}
  const pb::FieldDescriptor* field() const { return field_; }
  // Replaces an existing message.
  pb::Message& NewMessage() {
    if (add_) return *access_.AddMessage(&message_, field_);
    pb::Message& message = *access_.MutableMessage(&message_, field_);
    message.Clear();
    return message;
  }
  void Put(bool v) { Use(&pb::Reflection::SetBool, &pb::Reflection::AddBool, v); }
  void Put(int32_t v) { Use(&pb::Reflection::SetInt32, &pb::Reflection::AddInt32, v); }
  void Put(int64_t v) { Use(&pb::Reflection::SetInt64, &pb::Reflection::AddInt64, v); }
  void Put(uint32_t v) { Use(&pb::Reflection::SetUInt32, &pb::Reflection::AddUInt32, v); }
  void Put(uint64_t v) { Use(&pb::Reflection::SetUInt64, &pb::Reflection::AddUInt64, v); }
  void Put(std::string v) {
    if (add_) {
      access_.AddString(&message_, field_, std::move(v));
    } else {
      access_.SetString(&message_, field_, std::move(v));
    }
  }
  void PutEnum(int v) { Use(&pb::Reflection::SetEnumValue, &pb::Reflection::AddEnumValue, v); }

 private:
  template <typename Set, typename Add, typename T>
  void Use(Set set, Add add, T value) {
    if (add_) {
      (access_.*add)(&message_, field_, value);
    } else {
      (access_.*set)(&message_, field_, value);
    }
  }
  pb::Message& message_;
  const pb::Reflection& access_;
  const pb::FieldDescriptor* field_;
  const bool add_;
};

}  // namespace tollgate::transcode
