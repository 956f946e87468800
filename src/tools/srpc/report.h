// What srpc-perf prints: a table for people, JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/srpc/load.h"

namespace cairn::srpc::tools {

std::string table_header();
std::string table_row(const Measured& measured);

nlohmann::ordered_json to_json(const Measured& measured);
// {"program", "version", "server", "runs": [...]}
nlohmann::ordered_json to_json(const std::string& server, const std::vector<Measured>& all);

}  // namespace cairn::srpc::tools
