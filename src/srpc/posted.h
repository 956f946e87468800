// Posted: a function that runs in a later round unless its owner is gone by then. Loop::post alone can't be taken back.
#pragma once

#include "reactor/loop.h"

namespace cairn::srpc {

class Posted {
 public:
  Posted(Loop& loop, Loop::Function function, void* argument)
      : loop_(loop), node_(new Node{function, argument, false, false}) {}
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;
  ~Posted() {
    if (node_->posted) {
      node_->orphan = true;
    } else {
      delete node_;
    }
  }

  // Posting what is posted already does nothing.
  void post() {
    if (node_->posted) return;
    node_->posted = true;
    loop_.post(&run, node_);
  }

 private:
  struct Node {
    Loop::Function function;
    void* argument;
    bool posted;
    bool orphan;
  };
  static void run(void* address) {
    auto* node = static_cast<Node*>(address);
    node->posted = false;
    if (node->orphan) {
      delete node;
    } else {
      node->function(node->argument);
    }
  }

  Loop& loop_;
  Node* node_;
};

}  // namespace cairn::srpc
