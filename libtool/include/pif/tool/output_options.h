// The output that most tools make of one input: laid out like it, unless the user says otherwise. The controller's
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pif/tool/controller.h"

namespace CLI {
class App;
}

namespace pif::tool {

// The user's options.
struct OutputOptions {
  std::optional<std::uint32_t> width;
  std::vector<std::string> nodes;  // LFSs by name or NodeId, in order
  std::optional<std::uint32_t> bevy;
  bool same_host_ok = false;  // CreateOptions::same_host_ok
  bool no_clobber = false;
};

// --width, --nodes, --bevy, --same-host-ok, --no-clobber. Parsing writes to `wanted`, which outlives that.
void add_output_options(CLI::App& app, OutputOptions& wanted);

// LFSs that a file created so will have: 1 at least, also where the server chooses.
std::uint32_t width_of(const CreateOptions& options);

// How to create it: the input's format, mode and attributes, and its LFSs and bevies unless `wanted` says otherwise.
// kInvalid says what does not fit; else as Client::stat() and status(). input: its number; source: its path.
[[nodiscard]] Result<CreateOptions> options_of_output(Controller& controller, std::size_t input,
                                                      const std::string& source, const OutputOptions& wanted);

// The same of an output without an input to be like: what the user did not say, its folder decides.
[[nodiscard]] Result<CreateOptions> options_of_new_output(Controller& controller, const Format& format,
                                                          const OutputOptions& wanted);

// Whether that gives it the LFSs and the bevies of `source`, the input.
bool keeps_layout(const File& source, const CreateOptions& options);

}  // namespace pif::tool
