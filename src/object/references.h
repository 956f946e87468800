// References: which of many data ids some record refers to. Marks a sorted list by one walk over all records of all
// groups, a page at a time.
//
// The order of the walk matters, because records change under it: a reference moves only from a part to a part table,
// and from there or from an object into the delete queue, always within one group. Within each group the walk looks at
// parts, tables, objects and then the queue, so a reference that moves is seen where it was or where it went. Data that
// left the queue is deleted already.
#pragma once

#include <cstdint>
#include <vector>

#include "object/core.h"
#include "object/data_id.h"
#include "reactor/task.h"

namespace cairn::object {

class References {
 public:
  enum class State : uint8_t { none, queued, referenced };

  explicit References(std::vector<DataId> ids);

  size_t size() const { return ids_.size(); }
  // none: no such id in the list, or no record refers to it.
  State state(const DataId& id) const;
  void see(const DataId& id, State state);

  // Looks at everything. Errors: the client's, corrupt (a record that can't be read: then nothing is known).
  Task<Result<void>> mark(const Base& base, client::CallContext context);

 private:
  Task<Result<void>> mark_group(const Base& base, engine::GroupId group, client::CallContext context);

  std::vector<DataId> ids_;  // sorted, each once
  std::vector<State> states_;
};

}  // namespace cairn::object
