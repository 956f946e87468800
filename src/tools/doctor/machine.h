// Machine: everything that a check may ask of the machine. The real one is made by this_machine(); tests make one with
// a folder of files for /proc and /sys, and ports that they like.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "srpc/rdma/gid_choice.h"

namespace cairn::srpc::doctor {

struct Machine {
  std::filesystem::path root = "/";

  // Ports of RDMA devices, as libibverbs tells them. not_found: the kernel knows no such device. Any other error: there
  // are some, and this process can't open them.
  std::function<Result<std::vector<rdma::PortFacts>>()> rdma_ports;
  // Makes a ring as a reactor would.
  std::function<Result<void>()> try_io_uring;
  // What a program prints; nullopt: there is none, or it failed.
  std::function<std::optional<std::string>(const std::vector<std::string>& command)> run;

  // `path` is absolute. The text of a file without the line's end; nullopt: not there, or not to be read.
  std::optional<std::string> read(const std::string& path) const;
  std::optional<uint64_t> read_number(const std::string& path) const;
  // The names in a folder, sorted; empty when there is none.
  std::vector<std::string> list(const std::string& path) const;
  bool exists(const std::string& path) const;
  // Where a symbolic link leads, its last part: "/sys/class/net/eth2/master" gives "bond0".
  std::optional<std::string> link_name(const std::string& path) const;
};

Machine this_machine();

// The value of "Key:   value" in the text of a file such as /proc/self/status.
std::optional<std::string> value_of(const std::string& text, std::string_view key);

}  // namespace cairn::srpc::doctor
