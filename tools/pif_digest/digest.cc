#include "digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "pif/base/packed.h"
#include "pif/tool/message.h"

namespace pif::digest {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::uint64_t blocks_of(std::uint64_t records, std::uint64_t block_records) {
  return block_records == 0 ? 1 : (records + block_records - 1) / block_records;
}

Status add_input(tool::Worker& worker, tool::Input& input, std::uint64_t block_records, std::span<Digest> blocks) {
  tool::RowBatch batch;
  while (input.is_here()) {
    PIF_TRY_VALUE(const bool more, input.next(batch));
    if (!more) break;
    Row row = batch.first;
    batch.for_each([&](std::span<const std::byte> record) {
      const RecordNumber number = input.layout().record_at({input.index(), row++});
      const XXH128_hash_t hash = XXH3_128bits_withSeed(record.data(), record.size(), number);
      blocks[block_records == 0 ? 0 : number / block_records].add({hash.low64, hash.high64});
    });
    worker.progress(input.bytes_read(), input.bytes());
  }
  return {};
}

}  // namespace

std::string to_text(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

Status work(tool::Worker& worker) {
  const auto value = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(worker.value())), 1);
  if (!value) return fail(Code::kInternal, "the job's value cannot be read");
  Numbers all;
  for (std::size_t i = 0; i < worker.input_count(); ++i) {
    PIF_TRY_VALUE(tool::Input* const input, worker.input(i));
    std::vector<Digest> blocks(blocks_of(input->file_length().records, (*value)[0]));
    PIF_TRY(add_input(worker, *input, (*value)[0], blocks));
    for (const Digest& block : blocks) all.insert(all.end(), {block.low, block.high});
  }
  worker.set_result(packed(std::span<const std::uint64_t>(all)));
  return {};
}

Result<std::vector<std::vector<Digest>>> digests_of(tool::Controller& controller, std::size_t inputs,
                                                    std::uint64_t block_records) {
  std::vector<std::vector<Digest>> digests;
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    PIF_TRY_VALUE(const FileLength file_length, controller.input(i).file_length());
    digests.emplace_back(blocks_of(file_length.records, block_records));
    numbers += 2 * digests.back().size();
  }
  PIF_TRY_VALUE(const auto results,
                controller.run({.value = packed(std::span<const std::uint64_t>(&block_records, 1))}));
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    const auto all = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(results[rank])), numbers);
    if (!all) return tool::sent_nonsense(rank, "digests that cannot be read");
    std::size_t at = 0;
    for (auto& blocks : digests)
      for (Digest& block : blocks) block.add({(*all)[at], (*all)[at + 1]}), at += 2;
  }
  return digests;
}

}  // namespace pif::digest
