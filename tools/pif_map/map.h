// pif-map: a command of the shell once on every LFS, as a tool.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "pif/tool/controller.h"
#include "pif/tool/fields.h"
#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"
#include "pif/tool/worker.h"

namespace pif::map {

// The job as workers get it.
struct Task : tool::FieldOptions {
  std::string command;
  bool each = false;        // line n of its output is record n
  std::uint32_t by = 0;     // records with the same field go to one worker: which field, from 1; 0: none
  bool has_output = false;  // else what it writes goes to the controller
  static auto members(auto& self) {
    return std::tie(self.command, self.each, self.by, self.separator, self.csv, self.has_output);
  }
};

// A worker's answer: how much its command made.
struct MapOptions : tool::OutputOptions {
  Task task;
  std::string source, target;  // an empty target: stdout
};

// In front of each line of a stream: what it is. Keys are record numbers with --each, else the rank and the line.
enum What : char { kWords = 'w', kOutput = 'o' };  // stderr; stdout

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, MapOptions& options);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, MapOptions& options);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::map
