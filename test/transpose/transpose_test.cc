// Whole transposes in the simulated world: every shape, element, width, window and algorithm against a loop over bits.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_transpose/transpose.h"
#include "libtool/tool_fixtures.h"
#include "matrix/bits.h"
#include "pif/matrix/transpose.h"

namespace pif::transpose {
namespace {

using matrix::BitOrder;
using matrix::Bytes;
using matrix::Element;

using sim::must;

constexpr unsigned kLfss = 9;

// A file system of 9 LFSs and pif-transpose.
struct Fixture : sim::ToolFixture {
  explicit Fixture(std::uint64_t seed) : ToolFixture(seed, kLfss, work) {}
  Fixture(std::uint64_t seed, const sim::Options& options) : ToolFixture(seed, kLfss, work, {}, options) {}
};

// The same, whose workers have threads.
struct ThreadsFixture : sim::ToolFixture {
  explicit ThreadsFixture(std::uint64_t seed)
      : ToolFixture(seed, kLfss, work, {}, {.steps_max = UINT64_MAX / 2}, true) {}
};

constexpr Duration kLate = std::chrono::milliseconds(50);  // of a letter: jobs of many letters take minutes so

void put(Client& client, const std::string& path, const CreateOptions& options, const Bytes& bytes) {
  File file = must(client.create(path, options));
  must(file.write(bytes));
  must(file.commit());
}

Bytes get(Client& client, const std::string& path) {
  File file = must(client.open(path));
  Bytes all(must(file.file_length()).bytes);
  all.resize(must(file.pread(all, 0)));
  return all;
}

// apart: workers share nothing, as if each were on a machine of its own.
void transpose(Client& client, const TransposeOptions& wanted, bool apart = false) {
  tool::ControllerOptions options = sim::sim_controller();
  options.apart = apart;
  tool::Controller controller(client, options);
  must(control(controller, wanted));
}

std::string error_of(Client& client, const TransposeOptions& wanted) {
  tool::Controller controller(client, sim::sim_controller());
  const auto done = control(controller, wanted);
  return done ? std::string() : done.error().to_string();
}

TransposeOptions options_of(const std::string& source, const std::string& target) {
  TransposeOptions wanted;
  wanted.source = source;
  wanted.target = target;
  return wanted;
}

std::uint64_t any_side() {
  return *rc::gen::weightedOneOf<std::uint64_t>({{1, rc::gen::just<std::uint64_t>(1)},
                                                 {6, rc::gen::inRange<std::uint64_t>(1, 130)},
                                                 {2, rc::gen::inRange<std::uint64_t>(1, 1000)},
                                                 {1, rc::gen::inRange<std::uint64_t>(1, 3001)}});
}

Range any_window(std::uint64_t count, std::string& text) {
  const auto begin = *rc::gen::inRange<std::uint64_t>(0, count),
             end = *rc::gen::inRange<std::uint64_t>(begin, count + 1);
  text = fmt::format("{}:{}", begin, end);
  return {begin, end};
}

// What one case is: a matrix in a file, and how it is to be transposed.
struct Case {
  std::uint64_t rows = 0, columns = 0;
  Element element;
  Bytes bytes;  // padding bits too are random
  CreateOptions options;
  TransposeOptions wanted = options_of("/in", "/out");
  Range row_window, column_window;
  bool apart = false;

  static Case any() {
    Case made;
    made.element = {1U << *rc::gen::inRange(0U, 7U), *rc::gen::element(BitOrder::kMsb, BitOrder::kLsb)};
    made.rows = any_side();
    made.columns = any_side();
    if (made.element.bits > 4) made.columns = made.columns % 200 + 1;
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    made.bytes = matrix::random_bytes(made.rows * made.element.bytes_of(made.columns), random);
    made.choose_layouts();
    made.choose_way();
    return made;
  }

  // So many rows that threads have some of them each, unless they are few.
  static Case any_large() {
    Case made;
    made.element = {1U << *rc::gen::inRange(0U, 7U), *rc::gen::element(BitOrder::kMsb, BitOrder::kLsb)};
    made.options.width = *rc::gen::inRange<std::uint32_t>(1, 5);
    const std::uint64_t tiles = *rc::gen::inRange<std::uint64_t>(1, 6) * made.options.width;
    made.rows = *rc::gen::inRange<std::uint64_t>(1, tiles * matrix::tile_elements(made.element) + 2);
    const std::uint64_t bits = *rc::gen::inRange<std::uint64_t>(1, 3u << 20);
    made.columns = std::clamp<std::uint64_t>(bits / (made.rows * made.element.bits), 1, 20'000);
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    made.bytes = matrix::random_bytes(made.rows * made.element.bytes_of(made.columns), random);
    made.options.format = Format::fixed(static_cast<std::uint32_t>(made.element.bytes_of(made.columns)));
    made.choose_way();
    made.wanted.memory = *rc::gen::element<std::uint64_t>(256u << 10, 2u << 20, 1u << 30);
    return made;
  }

  void choose_layouts() {
    options.format = Format::fixed(static_cast<std::uint32_t>(element.bytes_of(columns)));
    options.width = *rc::gen::inRange<std::uint32_t>(1, kLfss + 1);
    if (*rc::gen::inRange(0, 4) == 0) {
      options.width = *rc::gen::element<std::uint32_t>(4, 8);
      options.bevy = 2;
    } else if (*rc::gen::inRange(0, 6) == 0) {
      options.width = 6;
      options.bevy = 3;
    }
    const auto target = *rc::gen::inRange(0, 6);
    if (target == 0) wanted.nodes = {"5", "2", "8"};
    if (target <= 1) wanted.bevy = 0;
    if (target == 2 && options.bevy == 0) wanted.width = *rc::gen::inRange<std::uint32_t>(1, kLfss + 1);
    if (target == 3) {
      wanted.width = 8;
      wanted.bevy = *rc::gen::element<std::uint32_t>(2, 4);
    }
  }

  void choose_way() {
    wanted.element_bits = element.bits;
    wanted.order = element.order;
    wanted.columns = columns;
    row_window = {0, rows};
    column_window = {0, columns};
    if (*rc::gen::inRange(0, 3) == 0) row_window = any_window(rows, wanted.rows);
    if (*rc::gen::inRange(0, 3) == 0) column_window = any_window(columns, wanted.columns_range);
    wanted.algorithm = *rc::gen::element(Algorithm::kDirect, Algorithm::kRecursive);
    wanted.memory = *rc::gen::element<std::uint64_t>(1, 64u << 10, 1u << 20, 1u << 30);
    apart = *rc::gen::element(true, false);
    wanted.threads = *rc::gen::element(1U, 2U, 3U, 7U) * kLfss;  // each worker has so many
  }

  Bytes window() const {
    const std::uint64_t from_pitch = element.bytes_of(columns), count = column_window.end - column_window.begin;
    const std::uint64_t to_pitch = element.bytes_of(count);
    Bytes out((row_window.end - row_window.begin) * to_pitch);
    for (std::uint64_t r = row_window.begin; r < row_window.end; ++r)
      for (std::uint64_t c = 0; c < count; ++c)
        copy_element(bytes.data() + r * from_pitch, column_window.begin + c,
                     out.data() + (r - row_window.begin) * to_pitch, c, element);
    return out;
  }
  Bytes expected() const {
    return matrix::transposed(window(), row_window.end - row_window.begin, column_window.end - column_window.begin,
                              element);
  }
  std::string text() const {
    return fmt::format(
        "{} x {} of {} bits, width {}, bevy {}, rows {}, columns {}, algorithm {}, memory {}, apart {}, threads {}",
        rows, columns, element.bits, options.width, options.bevy, wanted.rows, wanted.columns_range,
        static_cast<int>(wanted.algorithm), wanted.memory, apart, wanted.threads);
  }
};

// The elements that are wrong, for people.
std::string difference(const Bytes& got, const Bytes& expected) {
  if (got.size() != expected.size()) return fmt::format("{} bytes instead of {}", got.size(), expected.size());
  const auto at = std::mismatch(got.begin(), got.end(), expected.begin());
  if (at.first == got.end()) return {};
  return fmt::format("byte {} of {} is {:#x} instead of {:#x}", at.first - got.begin(), got.size(), *at.first,
                     *at.second);
}

// rc::check() of fewer cases, which take longer, unless RC_PARAMS is there (scripts/long).
template <typename F>
bool check_some(const std::string& what, const F& f) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (std::getenv("RC_PARAMS") == nullptr) params.maxSuccess = 40;
  const auto result = rc::detail::checkTestable(f, rc::detail::TestMetadata{"", what}, params);
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\n";
  return result.template is<rc::detail::SuccessResult>();
}

// Any transposes in that world, and back.
void check_transposes(Fixture&& fixture) {
  fixture.run([&](Client& client) {
    REQUIRE(rc::check("transposes", [&] {
      const Case one = Case::any();
      RC_LOG() << one.text() << "\n";
      put(client, "/in", one.options, one.bytes);
      transpose(client, one.wanted, one.apart);
      RC_ASSERT(difference(get(client, "/out"), one.expected()) == "");
      if (one.expected().empty()) return;
      transpose(client, options_of("/out", "/back"));  // it knows its shape
      RC_ASSERT(difference(get(client, "/back"), one.window()) == "");
    }));
  });
}

}  // namespace

TEST_CASE("any matrix, transposed in any way, is what a loop over its bits makes of it; twice is the identity") {
  check_transposes(Fixture(1));
}

TEST_CASE("workers' messages that come late or twice change nothing in a transpose") {
  check_transposes(Fixture(1, {.duplicate = 0.1, .reorder = 0.1, .reorder_max = kLate, .steps_max = UINT64_MAX / 2}));
}

TEST_CASE("any matrix is transposed to the same bytes on 1, 2, 3 and 7 threads of each worker") {
  ThreadsFixture fixture(9);
  fixture.run([&](Client& client) {
    REQUIRE(check_some("threads", [&] {
      Case one = Case::any_large();
      put(client, "/in", one.options, one.bytes);
      const Bytes expected = one.expected();
      for (const unsigned threads : {1U, 2U, 3U, 7U}) {
        one.wanted.threads = threads * one.options.width;
        RC_LOG() << one.text() << "\n";
        transpose(client, one.wanted, one.apart);
        RC_ASSERT(difference(get(client, "/out"), expected) == "");
      }
    }));
  });
}

TEST_CASE("matrices of a few rows or a few columns, too, in little memory and in much") {
  constexpr std::pair<std::uint64_t, std::uint64_t> kSides[] = {{1, 100'000}, {3, 5'000}, {40, 9'000}, {700, 1'500}};
  Fixture fixture(6);
  fixture.run([&](Client& client) {
    std::mt19937_64 random(6);
    for (const auto& [few, many] : kSides) {
      for (const auto& [rows, columns] : {std::pair(few, many), std::pair(many, few)}) {
        for (const std::uint32_t bits : {1, 8}) {
          Case one;
          one.element = {bits, BitOrder::kMsb};
          one.rows = rows;
          one.columns = columns;
          one.bytes = matrix::random_bytes(rows * one.element.bytes_of(columns), random);
          one.options.format = Format::fixed(static_cast<std::uint32_t>(one.element.bytes_of(columns)));
          one.options.width = 4;
          put(client, "/in", one.options, one.bytes);
          one.wanted.element_bits = bits;
          one.wanted.columns = columns;
          const Bytes expected = matrix::transposed(one.bytes, rows, columns, one.element);
          for (const std::uint64_t memory : {64u << 10, 2u << 20, 1u << 30}) {
            for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRecursive}) {
              one.wanted.memory = memory;
              one.wanted.algorithm = algorithm;
              if (algorithm == Algorithm::kDirect && memory < 2u << 20) continue;  // a message for each few columns
              INFO(one.text());
              transpose(client, one.wanted, memory == 1u << 30);
              CHECK(difference(get(client, "/out"), expected) == "");
            }
          }
        }
      }
    }
  });
}

TEST_CASE("of long rows only the pieces that a stripe needs are read, after the first") {
  Fixture fixture(5);
  fixture.run([&](Client& client) {
    constexpr std::uint64_t kRows = 90, kColumns = 50'003;
    const Element element{1, BitOrder::kMsb};
    std::mt19937_64 random(5);
    const Bytes bytes = matrix::random_bytes(kRows * element.bytes_of(kColumns), random);
    CreateOptions options;
    options.format = Format::fixed(static_cast<std::uint32_t>(element.bytes_of(kColumns)));
    for (const std::uint32_t bevy : {0u, 2u}) {
      options.width = 4;
      options.bevy = bevy;
      put(client, "/in", options, bytes);
      TransposeOptions wanted = options_of("/in", "/out");
      wanted.columns = kColumns;
      wanted.memory = 512u << 10;
      transpose(client, wanted);
      CHECK(difference(get(client, "/out"), matrix::transposed(bytes, kRows, kColumns, element)) == "");
    }
  });
}

TEST_CASE("an empty matrix or an empty window becomes an empty file that knows its shape") {
  Fixture fixture(2);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(2);
    put(client, "/in", options, Bytes(20));
    TransposeOptions wanted = options_of("/in", "/out");
    wanted.columns = 16;
    wanted.rows = "3:3";
    transpose(client, wanted);
    CHECK(get(client, "/out").empty());
    wanted.rows = ":";
    wanted.columns_range = "20:";
    transpose(client, wanted);
    CHECK(get(client, "/out").empty());
    transpose(client, options_of("/out", "/back"));
    CHECK(get(client, "/back").empty());
  });
}

TEST_CASE("the kept header of an image or of genotypes says the new shape") {
  Fixture fixture(3);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(3);
    options.attributes["header"] = "P4 # a page\n20 2\n";
    put(client, "/page", options, Bytes(6, std::byte{0xF0}));
    transpose(client, options_of("/page", "/turned"));
    CHECK(must(client.open("/turned")).attributes().at("header") == "P4\n2 20\n");
    CHECK(get(client, "/turned").size() == 20);
    options.attributes["header"] = std::string("\x6c\x1b\x01");
    put(client, "/variants", options, Bytes(6, std::byte{0x1B}));
    TransposeOptions wanted = options_of("/variants", "/samples");
    wanted.columns = 10;
    transpose(client, wanted);
    CHECK(must(client.open("/samples")).attributes().at("header") == std::string("\x6c\x1b\0", 3));
    CHECK(get(client, "/samples") == matrix::transposed(Bytes(6, std::byte{0x1B}), 2, 10, {2, BitOrder::kLsb}));
    transpose(client, options_of("/samples", "/variants-again"));
    CHECK(must(client.open("/variants-again")).attributes().at("header") == options.attributes.at("header"));
  });
}

TEST_CASE("what is no matrix is refused, and nothing is made") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(10);
    put(client, "/in", options, Bytes(20));
    put(client, "/short", options, Bytes(15));
    options.format = Format::lines();
    File lines = must(client.create("/lines", options));
    const std::vector<std::uint32_t> lengths = {2};
    must(lines.write_batch(lengths, Bytes(2, std::byte{10})));
    must(lines.commit());
    const auto refused = [&](const std::string& source, const std::string& why,
                             const std::function<void(TransposeOptions&)>& change) {
      TransposeOptions wanted = options_of(source, "/out");
      change(wanted);
      INFO(error_of(client, wanted));
      CHECK(error_of(client, wanted).find(why) != std::string::npos);
    };
    refused("/in", "Say it with --columns", [](TransposeOptions&) {});
    refused("/in", "records have 10 bytes, which is not what 81 elements",
            [](TransposeOptions& wanted) { wanted.columns = 81; });
    refused("/in", "records have 10 bytes, which is not what",
            [](TransposeOptions& wanted) { wanted.columns = UINT64_MAX; });
    refused("/in", "has no colon", [](TransposeOptions& wanted) {
      wanted.columns = 80;
      wanted.rows = "3";
    });
    refused("/short", "the last record is shorter", [](TransposeOptions& wanted) { wanted.columns = 80; });
    refused("/lines", "records of variable length", [](TransposeOptions& wanted) { wanted.columns = 80; });
    CHECK(!client.stat("/out"));
  });
}

}  // namespace pif::transpose
