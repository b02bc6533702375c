// rebuild: an LFS with an empty disk gets back what parity can give. It does that by itself; the command starts it and
// looks on.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

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

using wire::RebuildState;

struct RebuildOptions {
  std::string node;
  std::uint64_t rate = 0;
};

std::string percent_of(std::uint64_t done, std::uint64_t total) {
  return fmt::format("{}%", total == 0 || done >= total ? 100 : done * 100 / total);
}

// One rebuild, looked on from now on.
class RebuildWatch {
 public:
  RebuildWatch(const Program& program, Inventory& inventory, const proto::NodeInfo& node, std::uint64_t rate)
      : program_(program), inventory_(inventory), node_(node), rate_(rate) {}

  Outcome run() {
    Watch watch(program_);
    PIF_TRY(inventory_.rebuild(node_, rate_));
    PIF_TRY(watch.until([&] { return look(watch); },
                        fmt::format("{} goes on by itself; pif rebuild {} shows it", node_.name(), node_.name())));
    PIF_TRY(program_.common.json ? print(document()) : report());
    return is_done() ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  bool is_done() const { return now_.state() == RebuildState::kRebuilt; }

  // Whether it is over.
  Result<bool> look(Watch& watch) {
    PIF_TRY_VALUE(now_, inventory_.rebuild_status(node_));
    if (now_.state() == RebuildState::kRebuildWaits) PIF_TRY(inventory_.rebuild(node_, rate_));  // started again
    if (is_done() || now_.state() == RebuildState::kRebuildPauses) return true;
    show(watch);
    return false;
  }

  // Rate and time left are of what is rebuilt while this looks on.
  void show(Watch& watch) {
    if (now_.files_total() == 0) return;
    if (!first_bytes_) first_bytes_ = now_.bytes();
    watch.show(node_.name(), now_.bytes() - std::min(*first_bytes_, now_.bytes()),
               now_.bytes_total() - std::min(*first_bytes_, now_.bytes_total()));
  }

  Json document() const {
    Json failed = Json::array();
    for (const auto& one : now_.failed())
      failed.push_back({{"path", one.path()}, {"file", one.file()}, {"error", one.error().text()}});
    return {{"node", node_.name()},
            {"rebuilt", is_done()},
            {"files", now_.files()},
            {"files_total", now_.files_total()},
            {"bytes", now_.bytes()},
            {"bytes_total", now_.bytes_total()},
            {"bytes_now", now_.bytes_now()},
            {"seconds", seconds_of(now_.elapsed_ms())},
            {"failed", failed},
            {"failed_count", now_.failed_count()}};
  }

  Status report() const {
    std::string text;
    for (const auto& one : now_.failed())
      text += fmt::format("{}: {}\n", shown(one.path()), one_line(one.error().text()));
    if (now_.failed_count() > static_cast<std::uint64_t>(now_.failed_size()))
      text += fmt::format("and {} more\n", now_.failed_count() - static_cast<std::uint64_t>(now_.failed_size()));
    PIF_TRY(print(text));
    if (program_.common.quiet) return {};
    const std::string amount = fmt::format("{} files, {} in {}", now_.files(), human_bytes(now_.bytes_now()),
                                           human_time(std::chrono::duration<double>(seconds_of(now_.elapsed_ms()))));
    if (is_done()) {
      print_error(fmt::format("{} is rebuilt: {}\n", node_.name(), amount));
    } else {
      print_error(fmt::format("{} has {} of what it lost ({}); {} could not be rebuilt, and it tries again by itself\n",
                              node_.name(), percent_of(now_.bytes(), now_.bytes_total()), amount,
                              now_.failed_count() == 1 ? "a file" : fmt::format("{} files", now_.failed_count())));
    }
    return {};
  }

  const Program& program_;
  Inventory& inventory_;
  const proto::NodeInfo node_;
  const std::uint64_t rate_;
  std::optional<std::uint64_t> first_bytes_;  // when the progress was shown first
  proto::RebuildStatusReply now_;
};

Outcome rebuild(const Program& program, const RebuildOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  Inventory inventory(client::session_of(client));
  PIF_TRY(inventory.open(Inventory::Needs::kServer));
  PIF_TRY_VALUE(const proto::NodeInfo node, inventory.node_named(options.node));
  if (node.state() == kNodeStale) return fail(Code::kStaleNode, node.trouble());
  if (node.state() != kNodeUp)
    return fail(
        Code::kUnavailable,
        fmt::format("{0} is not up: start it with pif up; if its disk is lost, pif node replace {0} comes first",
                    node.name()));
  return RebuildWatch(program, inventory, node, options.rate).run();
}

}  // namespace

void add_rebuild_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<RebuildOptions>();
  CLI::App* command = add_command(app, program, "rebuild", "Restore what a replaced LFS had, from parity",
                                  "  pif node replace lfs1; pif rebuild lfs1\n"
                                  "  pif rebuild --rate 50MiB lfs1     at most so much a second\n"
                                  "  pif rebuild --json lfs1");
  command->add_option("NODE", options->node, "Name of the LFS, such as lfs1")->required();
  add_rate_option(command, options->rate, "At most");
  on_run(command, program, options, rebuild);
}

}  // namespace pif::cli
