// ObjectModel: what the objects of a store may be, seen from outside: by what was asked for and what was answered.
//
// A key has the object of its last acknowledged change. While a change is under way, and after one whose outcome is
// unknown (the power went), it may have either, until a look at it decides. Who looks while changes go on may see
// anything that the key could have had at some moment of the look.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace cairn::scenarios {

// An object's content: pieces one after the other, each of some bytes of a write's pattern (page_pattern.h). The etag
// names it: "v17".
struct ObjectContent {
  uint64_t version = 0;  // 0: no object
  struct Piece {
    uint64_t version = 0;
    uint64_t size = 0;
  };
  std::vector<Piece> pieces;
  uint64_t size() const;
};

class ObjectModel {
 public:
  // A look at a key, from its beginning to its end.
  struct Look {
    std::string key;
    std::vector<uint64_t> versions;  // 0 among them: may be absent
  };
  using LookHandle = std::list<Look>::iterator;

  uint64_t new_version() { return ++last_version_; }
  void describe(ObjectContent content) { contents_[content.version] = std::move(content); }
  const ObjectContent& content(uint64_t version) const { return contents_.at(version); }

  // A change that may take effect from now on, to `version` (0: delete).
  void begin_change(const std::string& key, uint64_t version);
  // It took effect, and is the last one that did. Only for keys that one client at a time changes.
  void acknowledge(const std::string& key, uint64_t version);
  // It did not, and never will.
  void refuse(const std::string& key, uint64_t version);
  // Nothing is under way any more, and this is what was found.
  void settle(const std::string& key, uint64_t version);

  bool may_be(const std::string& key, uint64_t version) const;
  const std::map<std::string, std::vector<uint64_t>>& keys() const { return keys_; }

  LookHandle begin_look(const std::string& key);
  void end_look(LookHandle look) { looks_.erase(look); }

 private:
  std::vector<uint64_t>& versions(const std::string& key);
  void tell_lookers(const std::string& key);

  uint64_t last_version_ = 0;
  std::map<uint64_t, ObjectContent> contents_;
  std::map<std::string, std::vector<uint64_t>> keys_;  // never empty: what the key may have
  std::list<Look> looks_;
};

}  // namespace cairn::scenarios
