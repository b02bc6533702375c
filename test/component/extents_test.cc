// Many pieces of a component at once: reading them, and components that are written in pieces.
#include "pif/component/extents.h"
#include "component/fixture.h"

namespace pif::component::test {
namespace {

struct Pieces {
  std::vector<ExtentRun> extents;
  Bytes memory;
};

// Random pieces that rise, of up to `size_max` bytes and at most that far apart; `disjoint` or not.
Pieces random_pieces(std::mt19937_64& random, std::uint64_t end, std::size_t size_max, std::uint64_t apart_max,
                     bool disjoint) {
  Pieces out;
  std::size_t bytes = 0;
  for (std::uint64_t at = random() % (apart_max + 1); at < end; at += random() % (apart_max + 1)) {
    const std::size_t size = std::min<std::uint64_t>(random() % (size_max + 1), end - at);
    out.extents.push_back({at, size, nullptr});
    bytes += size;
    at += disjoint ? std::max<std::size_t>(size, 1) : 1;
  }
  out.memory.resize(bytes);
  std::byte* to = out.memory.data();
  for (ExtentRun& extent : out.extents) {
    extent.at = to;
    to += extent.size;
  }
  return out;
}

void check_against(const Bytes& all, const Pieces& pieces) {
  for (const ExtentRun& run : pieces.extents) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const Extent extent = run[i];
      const auto* from = reinterpret_cast<const std::byte*>(all.data() + extent.offset);
      if (!std::equal(from, from + extent.size, extent.at)) FAIL("bytes at " << extent.offset << ", " << extent.size);
    }
  }
}

// Runs that rise: of up to `size_max` bytes at most that far apart, which may overlap; in memory some from behind.
Pieces random_runs(std::mt19937_64& random, std::uint64_t end, std::size_t size_max, std::uint64_t apart_max) {
  Pieces out;
  std::size_t bytes = 0;
  for (std::uint64_t at = random() % (apart_max + 1); at < end;) {
    ExtentRun run{at, static_cast<std::size_t>(random() % (size_max + 1)), nullptr, 1 + random() % 100, 0, 0};
    run.size = std::min<std::size_t>(run.size, end - at);
    run.stride = random() % (apart_max + 1);
    if (run.stride > 0) run.count = std::min(run.count, (end - at - run.size) / run.stride + 1);
    run.at_stride = static_cast<std::ptrdiff_t>(run.size + random() % 3);
    out.extents.push_back(run);
    bytes += run.count * static_cast<std::size_t>(run.at_stride);
    at += (run.count - 1) * run.stride + random() % (apart_max + 1);
  }
  out.memory.resize(bytes);
  std::byte* to = out.memory.data();
  for (ExtentRun& run : out.extents) {
    run.at = to;
    to += static_cast<std::ptrdiff_t>(run.count) * run.at_stride;
    if (random() % 2 == 0) continue;
    run.at = to - run.at_stride;
    run.at_stride = -run.at_stride;
  }
  return out;
}

}  // namespace

TEST_CASE("pieces of a component are what a read of all of it has there, however they lie") {
  for (const std::uint32_t length : {1u, 7u, 64u, 100u, 4096u, 5000u}) {
    for (const std::uint32_t form : {0u, 1u}) {
      Fixture component(Format::fixed(length), FileId(12), form);
      const Bytes all = pattern(700'001, length);
      component.fill(all);
      std::mt19937_64 random(length + form);
      for (const auto& [size, apart] : {std::pair{64, 0}, {64, 300}, {200, 5000}, {9000, 20000}, {300000, 200000}}) {
        Pieces pieces = random_pieces(random, all.size(), static_cast<std::size_t>(size),
                                      static_cast<std::uint64_t>(apart), random() % 2 == 0);
        const Reader reader = component.reader();
        ExtentReader extents(reader);
        const std::size_t half = pieces.extents.size() / 2;  // the window outlives a call
        must(extents.read(std::span(pieces.extents).first(half)));
        must(extents.read(std::span(pieces.extents).subspan(half)));
        check_against(all, pieces);
      }
    }
  }
}

TEST_CASE("runs of pieces are what a read of all has there, whatever their distances, checked or not") {
  for (const std::uint32_t length : {1u, 64u, 100u, 4096u, 5000u}) {
    Fixture component(Format::fixed(length));
    const Bytes all = pattern(700'001, length);
    component.fill(all);
    std::mt19937_64 random(length);
    for (const auto& [size, apart] :
         {std::pair{64, 0}, {8, 40}, {64, 300}, {200, 5000}, {9000, 20000}, {200000, 9000}}) {
      Pieces pieces =
          random_runs(random, all.size(), static_cast<std::size_t>(size), static_cast<std::uint64_t>(apart + 1));
      const Reader reader = component.reader();
      ExtentReader checked(reader), unchecked(*component.files.data);
      for (ExtentReader* extents : {&checked, &unchecked}) {
        std::fill(pieces.memory.begin(), pieces.memory.end(), std::byte{0});
        must(extents->read(pieces.extents));
        check_against(all, pieces);
      }
    }
  }
}

TEST_CASE("a run of pieces in many chunks is refused for any of them that is damaged") {
  Fixture component(Format::fixed(64));
  component.fill(pattern(64 << 10, 1));
  const Reader reader = component.reader();
  Bytes memory(64 << 10);
  const std::vector<ExtentRun> runs = {{0, 64, memory.data(), 256, 256, 64}};
  must(ExtentReader(reader).read(runs));
  for (const std::uint64_t chunk : {0u, 7u, 15u}) {
    const std::uint64_t offset = chunk * 4096 + 100;  // between pieces
    std::byte was{};
    must(component.files.data->read(offset, std::span(&was, 1)));
    const std::byte wrong = was ^ std::byte{1};
    must(component.files.data->write(offset, std::span(&wrong, 1)));
    CHECK(code_of(ExtentReader(reader).read(runs)) == Code::kCorrupt);
    must(component.files.data->write(offset, std::span(&was, 1)));
  }
}

TEST_CASE("a run of which the last piece is past the end is end of file, and so is one that leaves 64 bits") {
  Fixture component(Format::fixed(64));
  component.fill(pattern(1000, 1));
  Bytes memory(640);
  const Reader reader = component.reader();
  must(ExtentReader(reader).read(std::vector<ExtentRun>{{36, 64, memory.data(), 10, 100, 64}}));
  CHECK(code_of(ExtentReader(reader).read(std::vector<ExtentRun>{{37, 64, memory.data(), 10, 100, 64}})) ==
        Code::kEndOfFile);
  CHECK(code_of(ExtentReader(reader).read(std::vector<ExtentRun>{{0, 64, memory.data(), 5, UINT64_MAX / 2, 64}})) ==
        Code::kEndOfFile);
}

TEST_CASE("dense pieces cost one pass over the component, and lone ones their chunks only") {
  Fixture component(Format::fixed(64));
  component.fill(pattern(4 << 20, 1));
  Bytes memory(64);
  const Reader reader = component.reader();
  const auto scanned = [&](std::uint64_t apart) {
    std::vector<ExtentRun> extents;
    for (std::uint64_t at = 0; at < (4 << 20); at += apart) extents.push_back({at, 64, memory.data()});
    ExtentReader pieces(reader);
    must(pieces.read(extents));
    return pieces.scanned();
  };
  CHECK(scanned(256) == 4 << 20);
  CHECK(scanned(64 << 10) == 64 * 4096);
}

TEST_CASE("a piece of a damaged chunk is refused, and others beside it are read") {
  Fixture component(Format::fixed(64));
  const Bytes all = pattern(64 << 10, 1);
  component.fill(all);
  const std::byte wrong{0};
  must(component.files.data->write(5 * 4096 + 17, std::span(&wrong, 1)));
  Bytes memory(3 * 64);
  const Reader reader = component.reader();
  ExtentReader beside(reader);
  must(beside.read(std::vector<ExtentRun>{{4 * 4096, 64, memory.data()}, {6 * 4096, 64, memory.data() + 64}}));
  CHECK(std::equal(memory.begin(), memory.begin() + 64, all.begin() + 4 * 4096));
  ExtentReader inside(reader);
  const auto status =
      inside.read(std::vector<ExtentRun>{{4 * 4096, 64, memory.data()}, {5 * 4096 + 64, 64, memory.data()}});
  CHECK(code_of(status) == Code::kCorrupt);
  CHECK(status.error().text.find("chunk 5") != std::string::npos);
}

TEST_CASE("a piece past the end of a component is end of file") {
  Fixture component(Format::fixed(64));
  component.fill(pattern(1000, 1));
  Bytes memory(64);
  const Reader reader = component.reader();
  ExtentReader pieces(reader);
  must(pieces.read(std::vector<ExtentRun>{{936, 64, memory.data()}}));
  CHECK(code_of(pieces.read(std::vector<ExtentRun>{{937, 64, memory.data()}})) == Code::kEndOfFile);
  CHECK(code_of(pieces.read(std::vector<ExtentRun>{{UINT64_MAX - 8, 64, memory.data()}})) == Code::kEndOfFile);
}

TEST_CASE("a component written in pieces, alone or not, is what its pieces say, and zeros between them") {
  for (const std::uint32_t length : {1u, 64u, 100u, 4096u, 70000u}) {
    for (const bool alone : {false, true}) {
      Fixture component(Format::fixed(length), FileId(12), length % 2);
      std::mt19937_64 random(length);
      Bytes model(650'000 / length * length + length / 2);
      for (const auto& [size, apart] : {std::pair{100'000, 200'000}, {64, 300}, {5000, 20000}}) {
        Pieces pieces = random_pieces(random, model.size(), static_cast<std::size_t>(size),
                                      static_cast<std::uint64_t>(apart), true);
        const Bytes bytes = pattern(pieces.memory.size(), random());
        std::vector<ConstExtent> extents;
        std::size_t at = 0;
        for (const ExtentRun& extent : pieces.extents) {
          extents.push_back({extent.offset, extent.size, bytes.data() + at});
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), extent.size,
                      model.begin() + static_cast<std::ptrdiff_t>(extent.offset));
          at += extent.size;
        }
        must(write_extents(*component.files.data, extents, alone));
        check_against(model, [&] {  // as a member reads it
          ExtentReader reader(*component.files.data);
          must(reader.read(pieces.extents));
          return std::move(pieces);
        }());
      }
      const std::uint64_t rows = (model.size() + length - 1) / length;
      component.tail = must(sum_scattered(component.shape, component.files, rows, model.size()));
      CHECK(component.check().empty());
      CHECK(component.read_all() == model);
    }
  }
}

TEST_CASE("a component of which little was written has sums for all of it, and is not read where nobody wrote") {
  Fixture component(Format::fixed(64));
  const Bytes piece = pattern(64, 3);
  constexpr std::uint64_t kFar = 3ull << 30;
  must(write_extents(*component.files.data, std::vector<ConstExtent>{{4096 * 7 + 5, 64, piece.data()}}, true));
  must(write_extents(*component.files.data, std::vector<ConstExtent>{{kFar, 64, piece.data()}}, true));
  component.tail = must(sum_scattered(component.shape, component.files, kFar / 64 + 1, kFar + 64));
  Bytes around(128), zeros(64);
  must(component.reader().read_bytes(kFar - 64, around));
  CHECK(std::equal(piece.begin(), piece.end(), around.begin() + 64));
  must(component.reader().read_bytes(kFar / 2, zeros));
  CHECK(zeros == Bytes(64));
  Bytes first(4096 * 9);
  must(component.reader().read_bytes(0, first));
  CHECK(std::equal(piece.begin(), piece.end(), first.begin() + 4096 * 7 + 5));
}

TEST_CASE("what somebody wrote behind a component's end is not in it") {
  Fixture component(Format::fixed(64));
  const Bytes bytes = pattern(1 << 16, 3);
  must(write_extents(*component.files.data, std::vector<ConstExtent>{{0, bytes.size(), bytes.data()}}, false));
  component.tail = must(sum_scattered(component.shape, component.files, 100, 6400));
  CHECK(must(component.files.data->size()) == 6400);
  CHECK(component.check().empty());
  CHECK(component.read_all() == Bytes(bytes.begin(), bytes.begin() + 6400));
}

TEST_CASE("a component cannot end where its records do not") {
  Fixture component(Format::fixed(64));
  CHECK(code_of(sum_scattered(component.shape, component.files, 2, 64)) == Code::kCorrupt);
  CHECK(code_of(sum_scattered(component.shape, component.files, 1, 65)) == Code::kCorrupt);
}

TEST_CASE("what is written forwards is written back some way behind, each byte once") {
  constexpr std::uint64_t kMiB = 1u << 20;
  WritebackBehind behind;
  std::uint64_t asked = 10 * kMiB;  // it begins there
  for (std::uint64_t at = asked; at < 100 * kMiB; at += kMiB / 3) {
    const auto range = behind.due({at, at + kMiB / 3});
    if (!range) continue;
    CHECK(range->begin == asked);
    CHECK(range->end <= at - kMiB);  // others may still be there
    asked = range->end;
  }
  CHECK(asked >= 90 * kMiB);
  for (std::uint64_t at = 0; at < asked; at += kMiB) CHECK(!behind.due({at, at + kMiB}));  // again, and in front
}

}  // namespace pif::component::test
