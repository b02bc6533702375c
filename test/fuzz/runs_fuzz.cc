// Runs of another process: what is accepted is rising, disjoint and within the limits, and can be encoded again; what
// is encoded is accepted.
#include <array>
#include <vector>

#include "fuzz.h"
#include "pif/pattern/runs.h"

namespace {

using namespace pif;
using fuzz::must;
using patterns::ComponentRun;
using patterns::RunDecoder;
using patterns::RunEncoder;
using patterns::RunLimits;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Checks what the decoder gives out; adds it to `again`.
void check_runs(RunDecoder decoder, const RunLimits& limits, RunEncoder& again) {
  std::uint64_t runs = 0, pieces = 0, payload = 0, end = 0;
  while (const auto run = decoder.next()) {
    must(run->length > 0 && run->count > 0 && run->stride >= run->length,
         "a run has bytes, and does not overlap itself");
    must(run->offset >= end, "runs rise and are disjoint");
    must(run->count - 1 <= (limits.end_max - run->offset - run->length) / run->stride, "no run ends behind the limit");
    end = run->end();
    ++runs;
    pieces += run->count;
    payload += run->count * run->length;
    if (end < std::uint64_t{1} << 63) again.add_run(*run);
  }
  must(runs == decoder.runs() && pieces == decoder.pieces() && payload == decoder.payload() && end == decoder.end(),
       "the sums are those of the runs");
  must(payload <= limits.payload_max && pieces <= limits.pieces_max, "and within the limits");
}

void check_accepted(const RunDecoder& decoder, const RunLimits& limits) {
  RunEncoder encoder;
  check_runs(decoder, limits, encoder);
  if (encoder.end() != decoder.end()) return;  // an end that the encoder does not take
  const std::size_t bound = encoder.bytes();
  const std::string encoded = encoder.finish();
  must(encoded.size() <= bound, "bytes() is a bound");
  const auto again = RunDecoder::make(bytes_of(encoded), limits);
  must(again.has_value() || encoded.size() > patterns::kRunsBytesMax, "what is encoded is accepted");
  if (!again) return;
  must(again->payload() == decoder.payload() && again->end() == decoder.end(), "and has the same bytes");
  RunEncoder third;
  check_runs(*again, limits, third);
  must(third.finish() == encoded, "in a form that does not change any more");
}

void check_strange(fuzz::Input& in) {
  RunLimits limits;
  limits.end_max = in.wide() >> 1;
  limits.payload_max = in.wide();
  limits.pieces_max = in.wide();
  if (const auto decoder = RunDecoder::make(bytes_of(in.rest()), limits)) check_accepted(*decoder, limits);
}

// Pieces with small numbers, so that they touch and are alike.
void check_pieces(fuzz::Input& in) {
  RunEncoder encoder;
  std::uint64_t at = 0;
  std::vector<bool> wanted;
  while (!in.empty()) {
    at += in.byte() % 8;
    const std::uint64_t length = 1 + in.byte() % 4;
    wanted.resize(at, false);
    wanted.resize(at + length, true);
    encoder.add(at, length);
    at += length;
  }
  const std::string encoded = encoder.finish();
  auto decoder = RunDecoder::make(bytes_of(encoded), {});
  must(decoder.has_value(), "what is encoded is accepted");
  std::vector<bool> found;
  while (const auto run = decoder->next())
    for (std::uint64_t i = 0; i < run->count; ++i) {
      found.resize(run->offset + i * run->stride, false);
      found.resize(found.size() + run->length, true);
    }
  must(found == wanted, "the bytes are those that were added");
}

std::string packed(std::initializer_list<ComponentRun> runs) {
  RunEncoder encoder;
  for (const ComponentRun& run : runs) encoder.add_run(run);
  return encoder.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  if (in.byte() % 4 == 3)
    check_pieces(in);
  else
    check_strange(in);
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  const auto strange = [](std::string_view bytes, std::uint64_t end_max, std::uint64_t payload_max) {
    return Output().byte(0).wide(end_max << 1).wide(payload_max).wide(1000000).bytes(bytes).str();
  };
  const std::string mixed = packed({{3, 64, 64, 1}, {100, 64, 200, 500}, {200000, 5, 6, 2}, {1ull << 40, 1, 1, 1}});
  return {
      {"mixed", strange(mixed, 1ull << 62, 1ull << 40)},
      {"limited-end", strange(mixed, 1ull << 40, 1ull << 40)},
      {"limited-payload", strange(mixed, 1ull << 62, 32000)},
      {"cut", strange(mixed.substr(0, mixed.size() - 3), 1ull << 62, kAll)},
      {"touching", strange(std::string("\x02\x03\x01\x02\x00\x00\x00\x01", 8), 100, 100)},
      {"over-long", strange(std::string("\x82\x00\x01", 3), 100, 100)},
      {"over-64-bits", strange(std::string(10, '\xff') + "\x01", kAll >> 1, kAll)},
      {"endless-run", strange("\x01\x01\x01" + std::string(9, '\xff') + "\x01", kAll >> 1, kAll)},
      {"most-pieces", strange(packed({{0, 1, 2, (1ull << 62) - 1}}), kAll >> 1, kAll)},
      {"pieces", Output().byte(3).bytes("\x01\x01\x03\x01\x03\x01\x02\x02").bytes("\x04\x02\x04\x02\x07").str()},
  };
}
