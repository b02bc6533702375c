// The worker's part: its records through the command, and what that writes to where it belongs.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>

#include "filter.h"
#include "map.h"
#include "pif/base/limits.h"
#include "pif/tool/fields.h"
#include "pif/tool/made.h"
#include "pif/tool/ordered_output.h"
#include "pif/tool/partition.h"
#include "pif/tool/stream.h"
#include "pif/tool/team.h"

namespace pif::map {
namespace {

constexpr std::size_t kWordsMax = 256u << 10;  // of a worker's stderr that is shown
constexpr std::size_t kPutAtOnce = 4096;       // lines

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Cuts a text that comes in pieces into lines; the last one is ended where it does not end itself.
class Lines {
 public:
  using Take = std::function<Status(std::string_view line)>;
  explicit Lines(Take take) : take_(std::move(take)) {}

  Status add(std::string_view text) {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      if (rest_.empty()) {
        PIF_TRY(take_(text.substr(0, end + 1)));
        continue;
      }
      rest_ += text.substr(0, end + 1);
      PIF_TRY(take_(rest_));
      rest_.clear();
    }
    rest_ += text;
    if (rest_.size() < kRecordLengthMax) return {};
    return fail(Code::kTooLarge, fmt::format("the command wrote a line of more than {} MiB", kRecordLengthMax >> 20));
  }
  Status end() { return rest_.empty() ? Status() : add("\n"); }

 private:
  Take take_;
  std::string rest_;
};

// Whole lines of a text, one after another.
struct Waiting {
  std::string_view rest;
  bool is_over() const { return rest.empty(); }
  std::string_view take() {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    return line;
  }
};

class Mapping {
 public:
  Mapping(tool::Worker& worker, const Task& task, tool::Input& input)
      : worker_(worker), task_(task), input_(input), stream_(worker), words_([this](auto line) { return say(line); }) {}

  Status run() {
    if (task_.by > 0 || (task_.has_output && !task_.each)) {
      PIF_TRY_VALUE(team_, tool::Team::join(worker_));
    }
    if (task_.by > 0) PIF_TRY(partition());
    PIF_TRY(task_.each ? map_each() : map_all());
    PIF_TRY(stream_.end());
    worker_.set_result_as(tool::Made{records_, bytes_});
    return {};
  }

 private:
  using Next = std::function<Result<bool>(tool::RowBatch&)>;

  Status partition() {
    const tool::FieldSyntax syntax = task_.syntax();
    PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
    std::string buffer;
    const auto owner = [&](RecordNumber, std::span<const std::byte> record) {
      const std::string_view key = tool::field_of(text_of(record), task_.by - 1, syntax, buffer);
      return ranks[XXH3_64bits(key.data(), key.size()) % ranks.size()];
    };
    PIF_TRY_VALUE(mine_, tool::Partition::make(worker_, *team_, input_, owner));
    return {};
  }

  bool has_records() const { return mine_ ? mine_->bytes() > 0 : input_.is_here() && input_.rows() > 0; }
  Result<bool> next(tool::RowBatch& batch) { return mine_ ? mine_->next(batch) : input_.next(batch); }

  // All records through the command.
  Status filter(const Lines::Take& take) {
    Lines lines([&](std::string_view line) -> Status {
      ++records_;
      bytes_ += line.size();
      return take(line);
    });
    PIF_TRY_VALUE(Filter command, Filter::start(
                                      task_.command, [&](std::string_view text) { return lines.add(text); },
                                      [&](std::string_view text) { return words_.add(text); }));
    tool::RowBatch batch;
    for (bool takes = true; takes;) {
      PIF_TRY_VALUE(const bool more, next(batch));
      if (!more) break;
      PIF_TRY_VALUE(takes, command.feed(text_of(batch.data)));
      if (!mine_) worker_.progress(input_.bytes_read(), input_.bytes());
    }
    PIF_TRY(command.finish());
    PIF_TRY(lines.end());
    return words_.end();
  }

  Status say(std::string_view line) {
    const bool was_full = said_ > kWordsMax;
    said_ += line.size();
    if (was_full) return {};
    const std::string text = said_ > kWordsMax ? "(and more)\n" : std::string(line);
    return put(at_, kWords, fmt::format("{}: {}", worker_.node(), text));
  }
  Status put(tool::StreamKey key, What what, std::string_view text) {
    at_ = key;
    frame_.assign(1, what);
    frame_ += text;
    return stream_.put(key, bytes_of(frame_));
  }

  // ---- line n is record n ----

  Status map_each() {
    if (!has_records()) return {};
    PIF_TRY(filter([this](std::string_view line) { return put_row(line); }));
    if (records_ != input_.rows()) return another_count();
    return task_.has_output ? write() : Status();
  }
  tl::unexpected<Error> another_count() const {
    return fail(Code::kUnsupported,
                fmt::format("the command made {}{} lines of {} records; with --each it must make one "
                            "of each",
                            records_ > input_.rows() ? "at least " : "", records_, input_.rows()));
  }
  Status put_row(std::string_view line) {
    if (records_ > input_.rows()) return another_count();
    const Row row = records_ - 1;
    if (!task_.has_output) return put({0, input_.layout().record_at({input_.index(), row})}, kOutput, line);
    const auto bytes = bytes_of(line);
    rows_.lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
    rows_.data.insert(rows_.data.end(), bytes.begin(), bytes.end());
    ++rows_.count;
    return rows_.data.size() < tool::kBatchBytes ? Status() : write();
  }
  Status write() {
    if (rows_.count == 0) return {};
    PIF_TRY_VALUE(tool::Output* const output, worker_.output(0));
    PIF_TRY(output->write(rows_));
    rows_ = {};
    rows_.first = records_;
    return {};
  }

  // ---- any number of lines ----

  // They wait in scratch: where they belong is known when all workers' are counted, and what one writes to stdout is
  // behind that of the worker before it.
  Status map_all() {
    RecordNumber number = 0;
    if (worker_.rank() == 0 && !task_.has_output)
      return has_records() ? filter([&](std::string_view line) {
        return put({0, number++}, kOutput, line);
      })
                           : Status();
    if (!task_.has_output) {
      at_ = {worker_.rank(), 0};
      PIF_TRY(stream_.pass(at_));  // those before it need not wait
    }
    PIF_TRY_VALUE(tool::Scratch scratch, worker_.scratch());
    if (has_records()) PIF_TRY(filter([&](std::string_view line) { return scratch.append(bytes_of(line)); }));
    PIF_TRY(scratch.map());
    Waiting lines{text_of(scratch.bytes())};
    if (task_.has_output) return put_out(lines);
    while (!lines.is_over()) PIF_TRY(put({worker_.rank(), number++}, kOutput, lines.take()));
    return {};
  }

  Status put_out(Waiting& lines) {
    PIF_TRY_VALUE(const auto made, team_->all_gather_numbers({records_, bytes_}));
    FileLength all;
    RecordNumber number = 0;
    for (std::uint32_t rank = 0; rank < made.size(); ++rank) {
      number += rank < worker_.rank() ? made[rank][0] : 0;
      all.records += made[rank][0];
      all.bytes += made[rank][1];
    }
    if (all.records == 0) return {};
    PIF_TRY_VALUE(tool::Output* const output, worker_.output(0));
    PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, *team_, *output, all, {}));
    return out.fill([&]() -> Result<bool> {
      for (std::size_t i = 0; i < kPutAtOnce && !lines.is_over(); ++i) out.put(number++, bytes_of(lines.take()));
      return !lines.is_over();
    });
  }

  tool::Worker& worker_;
  const Task& task_;
  tool::Input& input_;
  tool::RecordStream stream_;
  Lines words_;
  std::optional<tool::Team> team_;
  std::optional<tool::Partition> mine_;    // of records that go by a field
  std::uint64_t records_ = 0, bytes_ = 0;  // that the command made
  std::uint64_t said_ = 0;
  tool::StreamKey at_;  // of what was put last: what is said meanwhile goes with it
  std::string frame_;
  tool::RowBatch rows_;  // not written yet
};

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const Task task, worker.value_as<Task>());
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  return Mapping(worker, task, *input).run();
}

}  // namespace pif::map
