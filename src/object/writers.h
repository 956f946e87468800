// The two kinds of Writer: of an object, of a part.
#pragma once

#include <string>
#include <utility>

#include "object/objects.h"
#include "object/uploads.h"

namespace cairn::object {

class ObjectWriter final : public Writer {
 public:
  ObjectWriter(Core& core, Session& session, Objects& objects, DataId data, std::string bucket, std::string key,
               CallContext context)
      : objects_(objects),
        sink_(core, session, data, context),
        bucket_(std::move(bucket)),
        key_(std::move(key)),
        context_(context) {}

  Task<Result<void>> write(mem::BufChain data) override { return sink_.write(std::move(data)); }
  Task<Result<ObjectInfo>> commit(Commit commit) override {
    return objects_.commit_put(bucket_, key_, sink_, std::move(commit), context_);
  }
  Task<void> abort() override { return sink_.discard(); }

 private:
  Objects& objects_;
  DataSink sink_;
  std::string bucket_;
  std::string key_;
  CallContext context_;
};

class PartWriter final : public Writer {
 public:
  PartWriter(Core& core, Session& session, Uploads& uploads, DataId data, Uploads::Found upload, std::string key,
             uint32_t number, CallContext context)
      : uploads_(uploads),
        sink_(core, session, data, context),
        upload_(std::move(upload)),
        key_(std::move(key)),
        number_(number),
        context_(context) {}

  Task<Result<void>> write(mem::BufChain data) override { return sink_.write(std::move(data)); }
  Task<Result<ObjectInfo>> commit(Commit commit) override {
    return uploads_.commit_part(upload_, key_, number_, sink_, std::move(commit), context_);
  }
  Task<void> abort() override { return sink_.discard(); }

 private:
  Uploads& uploads_;
  DataSink sink_;
  Uploads::Found upload_;
  std::string key_;
  uint32_t number_;
  CallContext context_;
};

}  // namespace cairn::object
