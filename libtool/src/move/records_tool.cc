#include "pif/tool/records_tool.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/packed.h"
#include "pif/tool/numbering.h"
#include "pif/tool/ordered_output.h"
#include "pif/tool/output_options.h"
#include "pif/tool/threads.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kPutBytes = 1u << 20;     // given to the output at once,
constexpr std::uint64_t kPutRecords = 64u << 10;  // and records

// What this worker's records gave, in their order, and where it goes.
struct Kept {
  Scratch records, lengths, numbers;
  std::uint64_t count = 0;
};
// In `numbers`, for each row that gave something.
struct RowNumbers {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// A batch of the input, and what came of it.
struct Piece {
  RowBatch batch;
  Records out;
  std::vector<std::uint32_t> counts;  // by row
};

class Work {
 public:
  Work(Worker& worker, Input& input) : worker_(worker), input_(input) {}
  Status begin(const MakeFunction& make);
  // The rows through the functions; what each gives goes to counts, and to kept.
  Status go_over(Range rows, std::vector<std::uint32_t>& counts, Kept* kept);
  Status end();

 private:
  Status run(RecordFunction& function, Piece& piece) const;
  Status keep(const Piece& piece, Kept& kept) const;

  Worker& worker_;
  Input& input_;
  std::vector<std::unique_ptr<RecordFunction>> functions_;  // by thread
  std::vector<Piece> pieces_;
};

Status Work::begin(const MakeFunction& make) {
  pieces_.resize(worker_.threads());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    PIF_TRY_VALUE(functions_.emplace_back(), make(worker_.value()));
  }
  return {};
}

Status Work::run(RecordFunction& function, Piece& piece) const {
  piece.out.clear();
  piece.counts.clear();
  PIF_TRY(function.take_batch(input_, piece.batch, piece.out, piece.counts));
  if (piece.counts.size() != piece.batch.count)
    return fail(Code::kInternal, fmt::format("{} counts of {} records", piece.counts.size(), piece.batch.count));
  if (piece.out.longest() <= kRecordLengthMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("a record of {} bytes; at most {} are possible", piece.out.longest(), kRecordLengthMax));
}

Status Work::keep(const Piece& piece, Kept& kept) const {
  PIF_TRY(kept.records.append(piece.out.data()));
  PIF_TRY(kept.lengths.append(std::as_bytes(std::span(piece.out.lengths()))));
  kept.count += piece.out.lengths().size();
  return {};
}

Status Work::go_over(Range rows, std::vector<std::uint32_t>& counts, Kept* kept) {
  PIF_ASSERT(!pieces_.empty() && functions_.size() == pieces_.size(), functions_.size(), pieces_.size());
  input_.go_over(rows);
  while (true) {
    std::size_t read = 0;
    for (bool more = true; read < pieces_.size() && more; read += more ? 1 : 0) {
      PIF_TRY_VALUE(more, input_.next(pieces_[read].batch));
    }
    if (read == 0) return {};
    PIF_TRY(worker_.run_tasks(read, [this](std::size_t i) { return run(*functions_[i], pieces_[i]); }));
    for (std::size_t i = 0; i < read; ++i) {
      counts.insert(counts.end(), pieces_[i].counts.begin(), pieces_[i].counts.end());
      if (kept != nullptr) PIF_TRY(keep(pieces_[i], *kept));
    }
    worker_.progress(input_.bytes_read(), input_.bytes());
  }
}

Status Work::end() {
  PIF_ASSERT(!functions_.empty());
  for (std::size_t i = 1; i < functions_.size(); ++i) PIF_TRY(functions_[0]->add(functions_[i]->found()));
  worker_.set_result(functions_[0]->found());
  return {};
}

// ---- the output -----------------------------------------------------------------------------------------------------

Status number_all(Worker& worker, Team& team, Input& input, Work& work, Kept& kept, std::uint64_t& records) {
  Numbering numbering(worker, team, input);
  std::vector<std::uint32_t> counts;
  while (!numbering.is_over()) {
    counts.clear();
    PIF_TRY(work.go_over(numbering.rows(), counts, &kept));
    PIF_TRY_VALUE(const auto numbers, numbering.next(counts));
    PIF_ASSERT(numbers.size() == counts.size(), numbers.size(), counts.size());
    std::vector<RowNumbers> there;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) there.push_back({numbers[i], counts[i]});
    PIF_TRY(kept.numbers.append(std::as_bytes(std::span(there))));
  }
  records = numbering.records();
  return {};
}

// Gives what was kept to the output, in its order.
class Giver {
 public:
  Giver(const Kept& kept, const Format& format, std::uint64_t records)
      : records_left_(kept.records.bytes()),
        lengths_(PackedNumbers<std::uint32_t>::take(lengths_rest_ = kept.lengths.bytes(), kept.count)),
        numbers_rest_(kept.numbers.bytes()),
        count_(kept.count),
        format_(format),
        records_(records) {}

  Result<bool> put_some(OrderedOutput& out) {
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < kPutRecords && bytes < kPutBytes && next_ < count_; ++i, ++next_) {
      if (row_.count == 0 && !take_row()) return fail(Code::kInternal, "numbers of kept records that cannot be read");
      const std::uint32_t length = (*lengths_)[next_];
      PIF_TRY(check(row_.first, length));
      out.put(row_.first++, records_left_.first(length));
      --row_.count;
      records_left_ = records_left_.subspan(length);
      bytes += length;
    }
    return next_ < count_;
  }

 private:
  bool take_row() {
    const auto numbers = PackedNumbers<std::uint64_t>::take(numbers_rest_, 2);
    if (numbers) row_ = {(*numbers)[0], (*numbers)[1]};
    return numbers.has_value();
  }
  // Only the last record of a file of fixed records may be shorter than the others.
  Status check(RecordNumber number, std::uint32_t length) const {
    if (!format_.is_fixed() || length == format_.record_length) return {};
    if (number + 1 == records_ && length > 0 && length < format_.record_length) return {};
    return fail(Code::kUnsupported, fmt::format("record {} of the output would have {} bytes, where each has {}",
                                                number, length, format_.record_length));
  }

  std::span<const std::byte> records_left_, lengths_rest_;
  std::optional<PackedNumbers<std::uint32_t>> lengths_;
  std::span<const std::byte> numbers_rest_;
  std::uint64_t count_, next_ = 0;
  Format format_;
  std::uint64_t records_;
  RowNumbers row_;
};

Status fill_output(Worker& worker, Input& input, Output& output, Work& work) {
  PIF_TRY_VALUE(Team team, Team::join(worker));
  Kept kept;
  for (Scratch* const scratch : {&kept.records, &kept.lengths, &kept.numbers}) {
    PIF_TRY_VALUE(*scratch, worker.scratch());
  }
  std::uint64_t records = 0;
  PIF_TRY(number_all(worker, team, input, work, kept, records));
  PIF_TRY_VALUE(const auto bytes, team.sum({kept.records.size()}));
  for (Scratch* const scratch : {&kept.records, &kept.lengths, &kept.numbers}) PIF_TRY(scratch->map());
  PIF_TRY_VALUE(auto out, OrderedOutput::open(worker, team, output, {records, bytes[0]}, {}));
  Giver giver(kept, output.format(), records);
  return out.fill([&] { return giver.put_some(out); });
}

}  // namespace

Status RecordFunction::take(RecordNumber, std::span<const std::byte>, Records&) {
  return fail(Code::kInternal, "a function of records that takes none");
}

Status RecordFunction::take_batch(const Input& input, RowBatch& batch, Records& out,
                                  std::vector<std::uint32_t>& counts) {
  Status status;
  Row row = batch.first;
  batch.for_each([&](std::span<const std::byte> record) {
    if (!status) return;
    const std::size_t before = out.lengths().size();
    status = take(input.layout().record_at({input.index(), row++}), record, out);
    counts.push_back(static_cast<std::uint32_t>(out.lengths().size() - before));
  });
  return status;
}

Status make_records(Worker& worker, Input& input, Output* output, const MakeFunction& make) {
  Work work(worker, input);
  PIF_TRY(work.begin(make));
  if (output != nullptr) {
    PIF_TRY(fill_output(worker, input, *output, work));
  } else if (input.is_here()) {
    std::vector<std::uint32_t> counts;
    for (Row row = 0; row < input.rows(); row += Numbering::kWindow, counts.clear())
      PIF_TRY(work.go_over({row, row + Numbering::kWindow}, counts, nullptr));
  }
  return work.end();
}

namespace {

// ---- the controller -------------------------------------------------------------------------------------------------

struct Wanted : OutputOptions {
  std::string source, target;
  unsigned threads = 0;
};

Result<CreateOptions> plan_output(Controller& controller, const RecordsTool& tool, const Wanted& wanted,
                                  const std::string& source) {
  PIF_TRY_VALUE(CreateOptions options, options_of_output(controller, 0, source, wanted));
  if (tool.format) options.format = *tool.format;
  return options;
}

Result<ExitCode> control(Controller& controller, const RecordsTool& tool, const Wanted& wanted) {
  PIF_TRY_VALUE(const std::string source, pif_path(wanted.source));
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  PIF_ASSERT(input == 0, input);
  if (tool.has_output) {
    PIF_TRY_VALUE(const std::string target, pif_path(wanted.target));
    PIF_TRY_VALUE(const CreateOptions options, plan_output(controller, tool, wanted, source));
    PIF_TRY(controller.create(target, options));
  }
  Job job;
  job.threads = wanted.threads;
  if (tool.value) job.value = tool.value();
  PIF_TRY_VALUE(const auto found, controller.run(job));
  if (tool.finish) {
    PIF_TRY_VALUE(const auto all, tool.make(job.value));
    for (std::uint32_t rank = 0; rank < found.size(); ++rank)
      if (const Status added = all->add(found[rank]); !added) return sent_wrong(rank, added.error());
    PIF_TRY(tool.finish(controller, *all));
  }
  if (tool.has_output) PIF_TRY(controller.commit());
  return ExitCode::kDone;
}

Result<Plan> explain(Controller& controller, const RecordsTool& tool, const Wanted& wanted) {
  PIF_TRY_VALUE(const std::string source, pif_path(wanted.source));
  PIF_TRY_VALUE(const std::size_t number, controller.open(source));
  File& input = controller.input(number);
  PIF_TRY_VALUE(const FileLength length, input.file_length());
  Plan plan = {{"tool", tool.name},
               {"input", source},
               {"records", std::to_string(length.records)},
               {"bytes", std::to_string(length.bytes)},
               {"workers", std::to_string(input.nodes().size())}};
  if (!tool.has_output) return plan;
  PIF_TRY_VALUE(const CreateOptions options, plan_output(controller, tool, wanted, source));
  plan.emplace_back("output", fmt::format("{}, on {} LFSs", wanted.target, width_of(options)));
  plan.emplace_back("moved", "a bit a record, to each worker; records that are not at their LFS already");
  return plan;
}

}  // namespace

Tool records_tool(RecordsTool wanted_tool) {
  const auto tool = std::make_shared<const RecordsTool>(std::move(wanted_tool));
  const auto wanted = std::make_shared<Wanted>();
  Tool made;
  made.name = tool->name;
  made.summary = tool->summary;
  made.examples = !tool->examples.empty() ? tool->examples
                                          : fmt::format("  {} /in{}\n", tool->name, tool->has_output ? " /out" : "");
  made.options = [tool, wanted](CLI::App& app) {
    app.add_option("SRC", wanted->source, "the file to read")->required();
    if (tool->has_output) {
      app.add_option("DST", wanted->target, "the file to make")->required();
      add_output_options(app, *wanted);
    }
    add_threads_option(app, wanted->threads);
    if (tool->options) tool->options(app);
  };
  made.control = [tool, wanted](Controller& controller) { return control(controller, *tool, *wanted); };
  made.explain = [tool, wanted](Controller& controller) { return explain(controller, *tool, *wanted); };
  made.work = [tool](Worker& worker) -> Status {
    PIF_TRY_VALUE(Input* const input, worker.input(0));
    Output* output = nullptr;
    if (tool->has_output) {
      PIF_TRY_VALUE(output, worker.output(0));
    }
    return make_records(worker, *input, output, tool->make);
  };
  return made;
}

}  // namespace pif::tool
