#include "pif/tool/exchange.h"

#include <algorithm>

#include <fmt/format.h>

#include "move/row_flow.h"
#include "pif/base/assert.h"
#include "pif/tool/team.h"

namespace pif::tool {
namespace {

constexpr std::uint32_t kFullWindows = 4;  // as many destinations get the window in full; more share what that makes

// Ranks of the workers that have rows of the input.
Result<std::vector<std::uint32_t>> find_sources(const Worker& worker, const Input& input) {
  PIF_TRY_VALUE(const auto ranks, worker.ranks_on(input));
  std::vector<std::uint32_t> sources;
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs)
    if (input.layout().rows(lfs, input.file_length().records) > 0) sources.push_back(ranks[lfs]);
  return sources;
}

// Until this worker's rows are at their places, and its component is written. sender: none if it has no rows.
Status move_rows(Worker& worker, Input& input, const Output& output, RowFlow& flow, Talk& talk, RowSender* sender) {
  const std::uint64_t own = sender != nullptr ? input.bytes() : 0;
  const std::uint64_t expected =  // near enough for people's eyes
      output.is_here() ? input.file_length().bytes / output.layout().width() : 0;
  const auto is_done = [&] {
    return flow.is_written() && (sender == nullptr || (sender->has_sent_all() && flow.is_settled()));
  };
  while (!is_done()) {
    bool sent = false;
    if (sender != nullptr) {
      PIF_TRY_VALUE(sent, sender->step([&](RowMessage message) { return flow.send(std::move(message)); }));
      // A block that is sent is followed by the next one at once.
      sent = sent || !sender->is_waiting();
    }
    PIF_TRY(talk.go_on(!sent && !is_done()));
    worker.progress(input.bytes_read() + flow.bytes_taken(), own + expected);
  }
  return {};
}

}  // namespace

Status exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options) {
  if (input.format() != output.format()) {
    return fail(Code::kInvalid,
                fmt::format("{} and {} have different record formats", input.file().path, output.file().path));
  }
  PIF_TRY_VALUE(auto sources, find_sources(worker, input));
  PIF_TRY_VALUE(Team team, Team::join(worker, options.silence));
  const std::size_t window_bytes =
      options.window_bytes * kFullWindows / std::max(output.layout().width(), kFullWindows);
  const WindowSize window = WindowSize::of(input.format(), window_bytes, static_cast<std::uint32_t>(sources.size()));
  PIF_TRY_VALUE(const auto flow,
                RowFlow::open(worker, team, output, input.file_length(), window, options.share_memory));
  Talk talk(team, options.silence);
  flow->join(talk, std::move(sources));
  std::optional<RowSender> sender;
  if (input.is_here() && input.rows() > 0) {
    flow->populate();
    sender.emplace(input, output.layout(), window);
    for (LfsIndex lfs = 0; lfs < output.layout().width(); ++lfs)
      sender->open(lfs, flow->credit(lfs), flow->memory(lfs));
  }
  PIF_TRY(move_rows(worker, input, output, *flow, talk, sender ? &*sender : nullptr));
  // Nothing is wrong if word of the end gets lost: the rows are where they belong.
  const Status all_done = talk.end();
  return all_done || all_done.error().code == Code::kTimeout ? Status() : all_done;
}

}  // namespace pif::tool
