// By descriptor: pieces of 64 bytes of a file in the page cache, against a loop that reads windows and picks, and
// against a call for each.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/need.h"
#include "harness.h"
#include "pif/pattern/builders.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kPiece = 64;
constexpr std::uint64_t kWindow = 256u << 10;
constexpr std::uint64_t kSingles = 1u << 20;  // calls that are measured
constexpr std::uint64_t kSeed = 3;
constexpr std::uint32_t kChunkBytes = 4096;  // of records of that length: a call for one piece checks no more

// Every `every`-th piece of a file of `bytes` bytes, in memory one after another.
struct Request {
  File& file;
  std::uint64_t bytes, every;
  std::vector<std::byte> memory;

  std::uint64_t pieces() const { return bytes / kPiece / every; }
};

void read_at_once(Request& r) {
  File::Pieces wanted;
  wanted.file = patterns::simple_strided(0, kPiece, static_cast<std::int64_t>(r.every * kPiece), r.pieces());
  wanted.memory = patterns::range(0, r.pieces() * kPiece);
  if (need(r.file.read_pieces(wanted, r.memory)) != r.pieces() * kPiece) die("pieces: a short read");
}

void read_and_pick(Request& r) {
  std::vector<std::byte> window(kWindow);
  std::byte* out = r.memory.data();
  for (std::uint64_t begin = 0; begin < r.bytes; begin += kWindow) {
    const std::size_t bytes = need(r.file.pread(window, begin));
    if (bytes != std::min(kWindow, r.bytes - begin)) die("windows: a short read");
    for (std::uint64_t at = 0; at < bytes; at += r.every * kPiece, out += kPiece)
      std::memcpy(out, window.data() + at, kPiece);
  }
}

void read_singly(Request& r) {
  const std::uint64_t n = std::min(kSingles, r.pieces());
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto place = std::span(r.memory).subspan(i * kPiece, kPiece);
    if (need(r.file.pread(place, i * r.every * kPiece)) != kPiece) die("single pieces: a short read");
  }
}

// Bytes of pieces per second; the first `n` pieces are compared with what the file has there.
double rate(Request& r, std::uint64_t n, void (*way)(Request&)) {
  std::memset(r.memory.data(), 0, r.memory.size());
  const double start = now();
  way(r);
  const double seconds = now() - start;
  for (std::uint64_t i = 0; i < n; ++i)
    if (!are_contents(std::span(r.memory).subspan(i * kPiece, kPiece), i * r.every * kPiece, kSeed))
      die(fmt::format("piece {} of every {}th is wrong", i, r.every));
  return static_cast<double>(n * kPiece) / seconds;
}

void measure(Context& c, File& file, std::uint64_t every) {
  Request r{file, c.options.bytes, every, {}};
  r.memory.resize(r.pieces() * kPiece);
  std::vector<double> ours, loops, singles, to_loop, to_single;
  for (unsigned round = 0; round <= c.options.repeats; ++round) {
    const double all = rate(r, r.pieces(), read_at_once), loop = rate(r, r.pieces(), read_and_pick);
    const double single = rate(r, std::min(kSingles, r.pieces()), read_singly);
    if (round == 0) continue;  // warm-up
    ours.push_back(all), loops.push_back(loop), singles.push_back(single);
    to_loop.push_back(all / loop), to_single.push_back(all / single);
  }
  const std::string name = every == 1 ? std::string("read all 64 B") : fmt::format("read every {}th 64 B", every);
  c.report.add(
      {name + " : windows", rate_text(median(ours)), rate_text(median(loops)), median(to_loop), 0.7, true, ""});
  c.report.add({name + " : calls", rate_text(median(ours)), rate_text(median(singles)), median(to_single),
                every == 4 ? 8.0 : 0.0, true, ""});
}

}  // namespace

void bench_galley_descriptors(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  touch_memory(c);
  Client client = connect_to(system.folder(), DataPath::kDescriptors);
  make_file(client, "/pieces", c.options.bytes, kSeed, kChunkBytes);
  File file = need(client.open("/pieces"));
  for (const std::uint64_t every : {1, 4, 16}) measure(c, file, every);
}

}  // namespace pif::bench
