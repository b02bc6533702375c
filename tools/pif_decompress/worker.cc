// The worker's part: each record where it lies, or chains together, and then each record to its place.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "../pif_compress/codec.h"
#include "../pif_compress/stored.h"
#include "decompress.h"
#include "pif/tool/copy_class.h"
#include "pif/tool/head.h"
#include "pif/tool/made.h"
#include "pif/tool/ordered_output.h"
#include "pif/tool/partition.h"
#include "pif/tool/team.h"

namespace pif::decompress {
namespace {

using compress::Decoder;
using compress::Description;
using compress::Dictionary;

std::vector<std::span<const std::byte>> records_of(tool::RowBatch& batch) {
  std::vector<std::span<const std::byte>> records;
  records.reserve(batch.count);
  batch.for_each([&](std::span<const std::byte> record) { records.push_back(record); });
  return records;
}

class Decompression {
 public:
  Decompression(tool::Worker& worker, const Description& description, const Format& format,
                const Dictionary& dictionary, tool::Input& input, tool::Output& output)
      : worker_(worker),
        description_(description),
        format_(format),
        dictionary_(dictionary),
        input_(input),
        output_(output),
        made_(worker.threads()) {}

  Status run_here();
  Status run_moving(const parity::Layout& original);

 private:
  // Of a batch, as many as are decompressed at once.
  struct Piece {
    std::size_t begin = 0, end = 0;
  };

  struct Chains;

  Decoder& decoder(std::size_t i);
  std::vector<Piece> cut(const std::vector<std::span<const std::byte>>& stored) const;
  Status decode(const std::vector<std::span<const std::byte>>& stored, Row first, Piece& piece, std::size_t thread);
  Status check(RecordNumber number, std::size_t bytes, const Status& decoded) const;
  Status write(tool::RowBatch& stored);
  Result<bool> put_some(Chains& chains, tool::OrderedOutput& out);

  tool::Worker& worker_;
  const Description& description_;
  const Format& format_;
  const Dictionary& dictionary_;
  tool::Input& input_;
  tool::Output& output_;
  std::map<std::size_t, Decoder> decoders_;  // by thread, or by component of the original
  std::vector<tool::RowBatch> made_;         // by thread
};

Decoder& Decompression::decoder(std::size_t i) { return decoders_.try_emplace(i, dictionary_).first->second; }

// That a record is what it was, of which so many bytes were made.
Status Decompression::check(RecordNumber number, std::size_t bytes, const Status& decoded) const {
  const std::uint64_t last = input_.file_length().records - 1;
  const bool has_length = !format_.is_fixed() || bytes == format_.record_length ||
                          (number == last && bytes > 0 && bytes < format_.record_length);
  if (decoded && has_length) return {};
  const std::string text =
      decoded ? fmt::format("has {} bytes, not {}", bytes, format_.record_length) : decoded.error().text;
  return fail(Code::kCorrupt, fmt::format("record {} (from 0) of {} {}", number, input_.file().path, text));
}

// ---- each record where it lies --------------------------------------------------------------------------------------

// So that a piece becomes a batch of rows.
std::vector<Decompression::Piece> Decompression::cut(const std::vector<std::span<const std::byte>>& stored) const {
  std::vector<Piece> pieces;
  std::uint64_t bytes = tool::kBatchBytes;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (bytes >= tool::kBatchBytes) {
      pieces.push_back({i, i});
      bytes = 0;
    }
    ++pieces.back().end;
    bytes += std::min<std::uint64_t>(Decoder::size_of(stored[i]), tool::kBatchBytes);
  }
  return pieces;
}

// As far as a batch of rows; the piece then begins where it goes on.
Status Decompression::decode(const std::vector<std::span<const std::byte>>& stored, Row first, Piece& piece,
                             std::size_t thread) {
  Decoder& decoder = decoders_.at(thread);
  tool::RowBatch& rows = made_[thread];
  rows.first = first + piece.begin;
  rows.count = 0;
  rows.lengths.clear();
  rows.data.clear();
  for (; piece.begin < piece.end && rows.data.size() < tool::kBatchBytes; ++piece.begin) {
    const Row row = first + piece.begin;
    const std::size_t before = rows.data.size();
    const Status decoded = description_.has_chains ? decoder.add_of_chain(stored[piece.begin], row, rows.data)
                                                   : decoder.add(stored[piece.begin], rows.data);
    const std::size_t bytes = rows.data.size() - before;
    PIF_TRY(check(input_.layout().record_at({input_.index(), row}), bytes, decoded));
    rows.lengths.push_back(static_cast<std::uint32_t>(bytes));
    ++rows.count;
  }
  return {};
}

// A chain is decompressed by one thread, since each record needs the one before.
Status Decompression::write(tool::RowBatch& batch) {
  const auto stored = records_of(batch);
  if (description_.has_chains) {
    for (Piece piece{0, stored.size()}; piece.begin < piece.end;) {
      PIF_TRY(decode(stored, batch.first, piece, 0));
      PIF_TRY(output_.write(made_[0]));
    }
    return {};
  }
  auto pieces = cut(stored);
  for (std::size_t done = 0; done < pieces.size(); done += made_.size()) {
    const std::size_t now = std::min(made_.size(), pieces.size() - done);
    PIF_TRY(worker_.run_tasks(now, [&](std::size_t i) { return decode(stored, batch.first, pieces[done + i], i); }));
    for (std::size_t i = 0; i < now; ++i) PIF_TRY(output_.write(made_[i]));
  }
  return {};
}

Status Decompression::run_here() {
  for (std::size_t thread = 0; thread < made_.size(); ++thread) (void)decoder(thread);
  tool::RowBatch batch;
  while (true) {
    PIF_TRY_VALUE(const bool more, input_.next(batch));
    if (!more) return {};
    PIF_TRY(write(batch));
    worker_.progress(input_.bytes_read(), input_.bytes());
  }
}

// ---- chains of components that are no more --------------------------------------------------------------------------

// What is this worker's of them, and how far it is.
struct Decompression::Chains {
  tool::Partition mine;
  const parity::Layout& original;
  tool::RowBatch batch;
  std::vector<std::span<const std::byte>> stored;  // in the batch
  std::size_t next = 0;                            // of these
  std::vector<std::byte> made;                     // by the last call of put_some()
};

// The records of a chain go to one worker, in their order; what it makes of them goes to its place.
Status Decompression::run_moving(const parity::Layout& original) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker_));
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  const auto owner = [&](RecordNumber number, std::span<const std::byte> record) {
    const Cell cell = original.locate(number);
    const Row head = cell.row - std::min<Row>(compress::place_of(record), cell.row);
    return ranks[(cell.lfs + head / compress::kChainMax) % ranks.size()];
  };
  PIF_TRY_VALUE(auto mine, tool::Partition::make(worker_, team, input_, owner));
  Chains chains{std::move(mine), original, {}, {}, 0, {}};
  const FileLength whole{description_.records, description_.bytes};
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team, output_, whole, {}));
  return out.fill([&] { return put_some(chains, out); });
}

// About a batch of records. False: there are no more.
Result<bool> Decompression::put_some(Chains& chains, tool::OrderedOutput& out) {
  if (chains.next == chains.stored.size()) {
    PIF_TRY_VALUE(const bool more, chains.mine.next(chains.batch));
    if (!more) return false;
    chains.stored = records_of(chains.batch);
    chains.next = 0;
  }
  chains.made.clear();
  std::vector<std::size_t> ends;
  const auto numbers = chains.mine.numbers().subspan(chains.next);
  for (; chains.next < chains.stored.size() && chains.made.size() < tool::kBatchBytes; ++chains.next) {
    const RecordNumber number = numbers[ends.size()];
    const Cell cell = chains.original.locate(number);
    const std::size_t before = chains.made.size();
    const Status decoded = decoder(cell.lfs).add_of_chain(chains.stored[chains.next], cell.row, chains.made);
    PIF_TRY(check(number, chains.made.size() - before, decoded));
    ends.push_back(chains.made.size());
  }
  for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++])
    out.put(numbers[i], std::span(chains.made).subspan(begin, ends[i] - begin));
  return true;
}

}  // namespace

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(const compress::Task task, worker.value_as<compress::Task>());
  const auto description = tool::unpack_head<Description>(task.description);
  if (!description) return fail(Code::kInternal, "the job's value cannot be read");
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  PIF_TRY_VALUE(const Format format, description->format());
  PIF_TRY_VALUE(const parity::Layout original, description->layout());
  PIF_TRY_VALUE(const Dictionary dictionary, Dictionary::make(task.dictionary, {}));
  Decompression work(worker, *description, format, dictionary, *input, *output);
  const bool moves = description->has_chains && original != input->layout();
  if (moves)
    PIF_TRY(work.run_moving(original));
  else if (input->is_here() && input->rows() > 0)
    PIF_TRY(work.run_here());
  tool::Made made;
  if (output->is_here() && output->is_made())
    made = {output->layout().rows(output->index(), input->file_length().records), output->bytes_written()};
  worker.set_result_as(made);
  return {};
}

}  // namespace pif::decompress
