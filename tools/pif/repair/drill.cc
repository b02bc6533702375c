// drill: an LFS takes itself out, what its parity gives is compared with what it has, and it comes back. The LFS does
// that by itself; the command starts it and looks on.
#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "command/options.h"
#include "command/program.h"
#include "pif/base/print.h"
#include "pif/wire/values.h"
#include "repair/inventory.h"
#include "repair/watch.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct DrillOptions {
  std::string node;
  std::uint64_t rate = 0;
};

double rate_of(const proto::DrillStatusReply& end) {
  return static_cast<double>(end.bytes()) / seconds_of(std::max<std::uint64_t>(end.elapsed_ms(), 1));
}

Status report(const Program& program, const proto::NodeInfo& node, const proto::DrillStatusReply& end, double window) {
  if (program.common.json) {
    Json errors = Json::array();
    for (const auto& error : end.errors()) errors.push_back(error.text());
    return print(Json{{"node", node.name()},
                      {"files", end.files()},
                      {"bytes", end.bytes()},
                      {"differing", end.differing()},
                      {"errors", errors},
                      {"seconds_rebuilding", seconds_of(end.elapsed_ms())},
                      {"bytes_per_second", rate_of(end)},
                      {"seconds_away", window}});
  }
  std::string text;
  for (const auto& error : end.errors()) text += fmt::format("{}: {}\n", node.name(), one_line(error.text()));
  const std::string verdict = end.differing() == 0
                                  ? std::string("all the same, bit for bit")
                                  : fmt::format("{} that differ or did not come back", end.differing());
  text += fmt::format("{}: {} files, {} rebuilt from parity in {} ({}/s): {}\n", node.name(), end.files(),
                      human_bytes(end.bytes()), human_time(std::chrono::duration<double>(seconds_of(end.elapsed_ms()))),
                      human_bytes(static_cast<std::uint64_t>(rate_of(end))), verdict);
  text += fmt::format("{} was away for {}, and takes part again\n", node.name(),
                      human_time(std::chrono::duration<double>(window)));
  return print(text);
}

Outcome drill(const Program& program, const DrillOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  Inventory inventory(client::session_of(client));
  PIF_TRY(inventory.open(Inventory::Needs::kServer));
  PIF_TRY_VALUE(const proto::NodeInfo node, inventory.node_named(options.node));
  if (node.state() != kNodeUp)
    return fail(Code::kUnavailable, "it is not up: a drill is for one that is there; start it with pif up",
                node.name());
  Watch watch(program);
  const auto begun = std::chrono::steady_clock::now();
  PIF_TRY(inventory.drill(node, options.rate));
  proto::DrillStatusReply now;
  const auto look = [&]() -> Result<bool> {
    PIF_TRY_VALUE(now, inventory.drill_status(node));
    if (!now.is_running()) return true;
    if (now.bytes_total() > 0) watch.show("drill", std::min(now.bytes(), now.bytes_total()), now.bytes_total());
    return false;
  };
  PIF_TRY(watch.until(look, "the LFS goes on by itself, and comes back when it is through"));
  const bool has_begun = now.files_total() > 0 || now.errors_size() == 0;
  if (!has_begun) return fail(Code::kUnavailable, now.errors(0).text(), node.name());
  const double window = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  PIF_TRY(report(program, node, now, window));
  return now.differing() == 0 && now.errors_size() == 0 ? ExitCode::kDone : ExitCode::kNegative;
}

}  // namespace

void add_drill_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<DrillOptions>();
  CLI::App* command = add_command(
      app, program, "drill", "Take an LFS away, rebuild its rows and compare them, put it back; exit 1 if one differs",
      "  pif drill --lose lfs2\n"
      "  pif drill --lose lfs2 --rate 50MiB     at most so much a second\n"
      "  pif drill --lose lfs2 --json");
  command->add_option("--lose", options->node, "Name of the LFS, such as lfs2")->required();
  add_rate_option(command, options->rate, "Rebuild at most");
  on_run(command, program, options, drill);
}

}  // namespace pif::cli
