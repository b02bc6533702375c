// Whole sorts in the simulated world: every format, width and option against std::stable_sort.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/check.h"
#include "../../tools/pif_sort/sort.h"
#include "libtool/tool_fixtures.h"

namespace pif::sort {
namespace {

using sim::must;

constexpr unsigned kLfss = 9;

// A file system of 9 LFSs and pif-sort.
struct Fixture : sim::ToolFixture {
  explicit Fixture(std::uint64_t seed) : ToolFixture(seed, kLfss, work) {}
  Fixture(std::uint64_t seed, const sim::Options& options) : ToolFixture(seed, kLfss, work, {}, options) {}
};

constexpr Duration kLate = std::chrono::milliseconds(50);  // of a letter: jobs of many letters take minutes so

using Records = std::vector<std::string>;

void put(Client& client, const CreateOptions& options, const Records& records, const std::string& path = "/in") {
  File file = must(client.create(path, options));
  std::string all;
  std::vector<std::uint32_t> lengths;
  for (const std::string& record : records) {
    all += record;
    lengths.push_back(static_cast<std::uint32_t>(record.size()));
  }
  const auto bytes = std::as_bytes(std::span(all));
  must(options.format.is_fixed() ? file.write(bytes) : file.write_batch(lengths, bytes));
  must(file.commit());
}

std::string get(Client& client) {
  File file = must(client.open("/out"));
  std::string all(must(file.file_length()).bytes, '\0');
  const std::size_t got = must(file.pread(std::as_writable_bytes(std::span(all)), 0));
  all.resize(got);
  return all;
}

using Keys = std::vector<std::string>;
const std::vector<Keys> kKeysOfText = {{}, {"0:3"}, {"1.2,1.4"}, {"2:2r", "0:1"}};
const std::vector<Keys> kKeysOfBytes = {{}, {"0:3"}, {"2:8:u"}, {"1:2:ir", "4:9"}, {"0:13"}};

// What one case is: a file, and how it is to be sorted.
struct Case {
  CreateOptions options;
  Records records;
  Records header;
  SortOptions wanted;
  bool apart = false;       // workers share nothing, as if each were on a machine of its own
  char first_letter = 'a';  // of those that records are made of
  std::string in_front;     // of most variable ones

  static Case any() {
    Case made;
    made.options.format =
        *rc::gen::element(Format::fixed(1), Format::fixed(13), Format::fixed(40), Format::variable(), Format::lines());
    made.options.width = *rc::gen::inRange<std::uint32_t>(1, kLfss + 1);
    if (*rc::gen::inRange(0, 6) == 0) {
      made.options.width = 8;
      made.options.bevy = 2;
    }
    const auto count = *rc::gen::weightedElement<std::size_t>({{1, 0}, {1, 1}, {1, 7}, {2, 60}, {1, 900}});
    const auto letters = *rc::gen::inRange(1, 4);  // few: many equal keys
    made.first_letter = *rc::gen::element('a', '\0');
    made.apart = *rc::gen::element(true, false);
    made.in_front = *rc::gen::weightedElement<std::string>({{3, ""}, {3, "2026-11-"}, {1, std::string(70, 'a')}});
    if (count < 900 && *rc::gen::inRange(0, 9) == 0) made.in_front = std::string(2790, 'a');
    for (std::size_t i = 0; i < count; ++i) made.records.push_back(made.any_record(letters));
    made.wanted.sources = {"/in"};
    made.wanted.target = "/out";
    made.wanted.memory = *rc::gen::element<std::uint64_t>(1u << 30, 1);  // in memory, and in scratch files
    made.wanted.keys.keys = made.any_keys();
    made.wanted.keys.reverse = *rc::gen::inRange(0, 4) == 0;
    made.wanted.merge_inputs = *rc::gen::inRange(0, 3) == 0;
    made.wanted.unique = *rc::gen::inRange(0, 4) == 0;
    made.wanted.merge = *rc::gen::element(MergeKind::kSplit, MergeKind::kToken, MergeKind::kPipelined);
    made.wanted.token_batch = *rc::gen::element<std::uint64_t>(0, 1, 7, 64, 4096);
    if (made.wanted.merge == MergeKind::kSplit)
      made.wanted.top = *rc::gen::element<std::uint64_t>(0, 0, 1, 7, 300, 5000);
    if (made.wanted.merge == MergeKind::kSplit)
      made.wanted.header_records = *rc::gen::weightedElement<std::uint64_t>({{4, 0}, {1, 1}, {1, 3}, {1, 50}});
    made.wanted.threads = *rc::gen::element(0U, 1U, 2U, 3U, 7U, 40U);
    const auto layout = *rc::gen::inRange(0, 6);
    if (layout == 0) made.wanted.nodes = {"5", "2", "8"};
    if (layout == 0 || layout == 1) made.wanted.bevy = 0;
    if (layout > 2 && made.options.bevy == 0) made.wanted.width = *rc::gen::inRange<std::uint32_t>(1, kLfss + 1);
    return made;
  }

  std::string any_record(int letters) const {
    const bool fixed = options.format.is_fixed();
    std::string record(fixed ? options.format.record_length : *rc::gen::inRange<std::size_t>(0, 30), ' ');
    for (char& c : record) c = static_cast<char>(first_letter + *rc::gen::inRange(0, letters));
    if (!fixed && *rc::gen::inRange(0, 20) > 0) record.insert(0, in_front);
    if (options.format.kind == RecordKind::kDelimited) record += '\n';
    return record;
  }
  std::vector<std::string> any_keys() const {
    if (!options.format.is_fixed()) return *rc::gen::elementOf(kKeysOfText);
    if (options.format.record_length < 13) return {};
    return *rc::gen::elementOf(kKeysOfBytes);
  }

  std::string expected() const {
    const KeyMaker maker = must(KeyMaker::make(wanted.keys, options.format));
    std::vector<std::pair<std::string, std::string>> keyed;
    for (const std::string& record : records) {
      std::string key;
      must(maker.make_key(std::as_bytes(std::span(record)), key));
      keyed.emplace_back(key, record);
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (wanted.unique) keyed.erase(std::unique(keyed.begin(), keyed.end(), same), keyed.end());
    if (wanted.top > 0 && wanted.top < keyed.size()) keyed.resize(wanted.top);
    std::string all;
    for (const std::string& record : header) all += record;
    for (const auto& [key, record] : keyed) all += record;
    return all;
  }
};

// The records in one file, or in up to three of any widths: some may be empty, and one may be named twice.
void put_inputs(Client& client, Case& one) {
  const auto files = *rc::gen::weightedElement<std::size_t>({{2, 1}, {1, 2}, {1, 3}});
  one.wanted.sources.clear();
  std::vector<Records> inputs;
  for (std::size_t i = 0, begin = 0; i < files; ++i) {
    const std::size_t end = i + 1 < files ? *rc::gen::inRange(begin, one.records.size() + 1) : one.records.size();
    CreateOptions options = one.options;
    if (i > 0) options.width = *rc::gen::inRange<std::uint32_t>(1, kLfss + 1);
    if (i > 0) options.bevy = 0;
    one.wanted.sources.push_back(fmt::format("/in{}", i));
    inputs.emplace_back(one.records.begin() + begin, one.records.begin() + end);
    put(client, options, inputs.back(), one.wanted.sources.back());
    begin = end;
  }
  if (files == 2 && *rc::gen::inRange(0, 4) == 0) {
    one.wanted.sources[1] = one.wanted.sources[0];
    inputs[1] = inputs[0];
  }
  one.records.clear();
  for (const Records& input : inputs) {
    const auto cut = static_cast<std::ptrdiff_t>(std::min(one.wanted.header_records, input.size()));
    if (&input == inputs.data()) one.header.assign(input.begin(), input.begin() + cut);
    one.records.insert(one.records.end(), input.begin() + cut, input.end());
  }
}

// Any sorts in that world.
void check_sorts(Fixture&& fixture) {
  fixture.run([&](Client& client) {
    REQUIRE(rc::check("sorts", [&] {
      Case one = Case::any();
      put_inputs(client, one);
      tool::ControllerOptions options = sim::sim_controller();
      options.apart = one.apart;
      tool::Controller controller(client, std::move(options));
      must(control(controller, one.wanted));
      RC_ASSERT(get(client) == one.expected());
    }));
  });
}

}  // namespace

TEST_CASE("any file, sorted on any width by any keys, is what a stable sort makes of it") { check_sorts(Fixture(1)); }

TEST_CASE("workers' messages that come late or twice change nothing in a sort") {
  check_sorts(Fixture(1, {.duplicate = 0.1, .reorder = 0.1, .reorder_max = kLate, .steps_max = UINT64_MAX / 2}));
}

TEST_CASE("a sort whose workers' messages are lost ends with an error and without an output, or does not miss them") {
  unsigned failed = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Fixture fixture(seed, {.drop = 0.003, .steps_max = UINT64_MAX / 2});
    fixture.run([&](Client& client) {
      Case one;
      one.options.format = seed % 2 == 0 ? Format::lines() : Format::fixed(5);
      one.options.width = 5;
      for (std::size_t i = 0; i < 900; ++i) one.records.push_back(fmt::format("{:04}\n", i * 7919 % 900));
      put(client, one.options, one.records);
      one.wanted.sources = {"/in"};
      one.wanted.target = "/out";
      one.wanted.merge = static_cast<MergeKind>(seed / 2 % 3);
      one.wanted.token_batch = 16;
      tool::ControllerOptions options = sim::sim_controller();
      // On one machine workers wait a day for each other before they merge: there nothing is lost.
      options.apart = seed % 4 < 2 || one.wanted.merge == MergeKind::kSplit;
      tool::Controller controller(client, std::move(options));
      const auto done = control(controller, one.wanted);
      INFO("seed " << seed << ": " << (done ? "" : done.error().to_string()));
      if (done) REQUIRE(get(client) == one.expected());
      if (!done) REQUIRE(client.stat("/out").error().code == Code::kNotFound);
      failed += done ? 0 : 1;
    });
  }
  CHECK(failed > 0);
  CHECK(failed < 6);
}

TEST_CASE("a check says whether a file is sorted, and which record is not") {
  Fixture fixture(2);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::lines();
    put(client, options, {"a\n", "b\n", "b\n", "a\n"});
    File file = must(client.open("/in"));
    const KeyMaker maker = must(KeyMaker::make({}, options.format));
    const OrderCheck plain = must(check_order(file, "/in", maker, false, {0, 4}));
    REQUIRE((!plain.sorted && plain.records == 4 && plain.bytes == 8));
    REQUIRE(plain.disorder == "/in: record 3 is out of order: a");
    const OrderCheck unique = must(check_order(file, "/in", maker, true, {0, 4}));
    REQUIRE((!unique.sorted && unique.records == 3));
    REQUIRE(unique.disorder == "/in: record 2 is out of order: b");
  });
}

TEST_CASE("workers that check a file come to the same as one client, wherever they are") {
  Fixture fixture(6);
  fixture.run([&](Client& client) {
    REQUIRE(rc::check("checks", [&] {
      Case one = Case::any();
      const KeyMaker maker = must(KeyMaker::make(one.wanted.keys, one.options.format));
      std::stable_sort(one.records.begin(), one.records.end(), [&](const std::string& a, const std::string& b) {
        std::string first, second;
        must(maker.make_key(std::as_bytes(std::span(a)), first));
        must(maker.make_key(std::as_bytes(std::span(b)), second));
        return first < second;
      });
      const auto swaps = *rc::gen::inRange<std::size_t>(0, 3);  // most are nearly sorted
      for (std::size_t i = 0; i < swaps && !one.records.empty(); ++i) {
        const auto any = [&] { return *rc::gen::inRange<std::size_t>(0, one.records.size()); };
        std::swap(one.records[any()], one.records[any()]);
      }
      put(client, one.options, one.records);
      one.wanted.check = true;
      const auto results_by = [&](std::uint64_t check_by_workers) {
        one.wanted.check_by_workers = check_by_workers;
        tool::ControllerOptions options = sim::sim_controller();
        options.apart = one.apart;
        tool::Controller controller(client, std::move(options));
        const tool::ExitCode code = must(control(controller, one.wanted));
        std::string found = code == tool::ExitCode::kDone ? "sorted" : "not sorted";
        for (const auto& [name, value] : controller.report().results)
          std::visit([&, &key = name](const auto& v) { found += fmt::format(" {} {}", key, v); }, value);
        return fmt::format("{} {}", found, controller.report().bytes_client_side);
      };
      RC_ASSERT(results_by(0) == results_by(UINT64_MAX));
    }));
  });
}

TEST_CASE("a record that has no key ends a check by workers with the words of a check by the client") {
  Fixture fixture(7);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::variable();
    options.width = 4;
    put(client, options, {"0001", "0002", "0003", "x", "0005", "0004"});
    SortOptions wanted;
    wanted.sources = {"/in"};
    wanted.check = true;
    wanted.keys.keys = {"0:4:u"};
    const auto error_by = [&](std::uint64_t check_by_workers) {
      wanted.check_by_workers = check_by_workers;
      tool::Controller controller(client, sim::sim_controller());
      return control(controller, wanted).error().to_string();
    };
    REQUIRE(error_by(0) == error_by(UINT64_MAX));
  });
}

TEST_CASE("every merge gives the same bytes, for every width and block size") {
  Fixture fixture(1);
  fixture.run([&](Client& client) {
    for (std::uint32_t width = 1; width <= kLfss; ++width) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{200}}) {
        Case one;
        one.options.format = Format::fixed(4);
        one.options.width = width;
        for (std::size_t i = 0; i < count; ++i) one.records.push_back(fmt::format("{:04}", i * 7919 % 50));
        put(client, one.options, one.records);
        one.wanted.sources = {"/in"};
        one.wanted.target = "/out";
        for (const MergeKind merge : {MergeKind::kToken, MergeKind::kPipelined}) {
          for (const std::uint64_t batch : {0, 1, 3, 4096}) {
            one.wanted.merge = merge;
            one.wanted.token_batch = batch;
            INFO("width " << width << ", " << count << " records, merge " << static_cast<int>(merge) << ", batch "
                          << batch);
            tool::Controller controller(client, sim::sim_controller());
            must(control(controller, one.wanted));
            REQUIRE(get(client) == one.expected());
          }
        }
      }
    }
  });
}

// Records of which many have the same key: enough that a worker's threads have some each.
Case many_records(const Format& format, std::uint32_t width) {
  Case one;
  one.options.format = format;
  one.options.width = width;
  const std::size_t length = format.is_fixed() ? format.record_length : 17;
  for (std::size_t i = 0; i < 12'000; ++i) {
    std::string record = fmt::format("{:04}{:05}", i * 7919 % 3000, i).substr(0, length);
    record.resize(format.is_fixed() ? length : record.size() + i % 13, '.');
    if (!format.is_fixed()) record += '\n';
    one.records.push_back(std::move(record));
  }
  one.wanted.sources = {"/in"};
  one.wanted.target = "/out";
  one.wanted.keys.keys = {format.is_fixed() ? "0:4" : "1.1,1.4"};
  return one;
}

TEST_CASE("a sort gives the same bytes with any number of threads") {
  Fixture fixture(6);
  fixture.run([&](Client& client) {
    for (const Format& format : {Format::fixed(9), Format::fixed(40), Format::lines()}) {
      for (const std::uint32_t width : {1U, 3U}) {
        Case one = many_records(format, width);
        put(client, one.options, one.records);
        for (const unsigned threads : {1U, 2U, 3U, 7U}) {
          for (const auto& [merge, memory, unique] :
               {std::tuple(MergeKind::kSplit, 1u << 30, false), std::tuple(MergeKind::kSplit, 1u << 30, true),
                std::tuple(MergeKind::kSplit, 200u << 10, false), std::tuple(MergeKind::kToken, 1u << 30, false),
                std::tuple(MergeKind::kPipelined, 1u << 30, true)}) {
            for (const bool apart : {false, true}) {
              one.wanted.threads = threads * width;
              one.wanted.merge = merge;
              one.wanted.memory = memory;
              one.wanted.unique = unique;
              INFO("records of " << format.record_length << ", width " << width << ", " << threads << " threads each");
              tool::ControllerOptions options = sim::sim_controller();
              options.apart = apart;
              tool::Controller controller(client, std::move(options));
              must(control(controller, one.wanted));
              REQUIRE((get(client) == one.expected()));
            }
          }
        }
      }
    }
  });
}

// Many short lines; the long ones come first, in one block.
TEST_CASE("every merge takes records that are much longer than most") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    Case one;
    one.options.format = Format::lines();
    one.options.width = 2;
    for (std::size_t i = 0; i < 4000; ++i) {
      one.records.push_back(fmt::format("{:04}\n", i * 7919 % 4000));
      if (i % 100 == 0) one.records.push_back(std::string(1u << 20, '!') + one.records.back());
    }
    put(client, one.options, one.records);
    one.wanted.sources = {"/in"};
    one.wanted.target = "/out";
    for (const MergeKind merge : {MergeKind::kSplit, MergeKind::kToken, MergeKind::kPipelined}) {
      for (const bool apart : {false, true}) {
        one.wanted.merge = merge;
        one.wanted.memory = apart ? 1 : 1u << 30;  // in scratch files, and in memory
        tool::ControllerOptions options = sim::sim_controller();
        options.apart = apart;
        tool::Controller controller(client, std::move(options));
        must(control(controller, one.wanted));
        REQUIRE((get(client) == one.expected()));
      }
    }
  });
}

TEST_CASE("a token carries keys that are longer than a message, also two at once") {
  Fixture fixture(5);
  fixture.run([&](Client& client) {
    Case one;
    one.options.format = Format::variable();
    one.options.width = 2;
    const std::string zeros(kRecordLengthMax, '\0');  // twice as long as a key
    one.records = {zeros, "b", zeros, zeros.substr(1), "a", zeros};
    put(client, one.options, one.records);
    one.wanted.sources = {"/in"};
    one.wanted.target = "/out";
    one.wanted.memory = 1u << 30;
    for (const MergeKind merge : {MergeKind::kToken, MergeKind::kPipelined}) {
      for (const bool unique : {false, true}) {
        one.wanted.merge = merge;
        one.wanted.unique = unique;
        one.wanted.token_batch = unique == (merge == MergeKind::kToken) ? 4096 : 0;
        tool::Controller controller(client, sim::sim_controller());
        must(control(controller, one.wanted));
        REQUIRE((get(client) == one.expected()));
      }
    }
  });
}

TEST_CASE("what cannot be sorted is refused, and nothing is made") {
  Fixture fixture(3);
  fixture.run([&](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(10);
    put(client, options, {"0123456789", "short"});
    const auto error_of = [&](const SortOptions& wanted) {
      tool::Controller controller(client, sim::sim_controller());
      const auto done = control(controller, wanted);
      return done ? std::string() : done.error().to_string();
    };
    SortOptions wanted;
    wanted.sources = {"/in"};
    wanted.target = "/out";
    REQUIRE(error_of(wanted).find("the last record is shorter") != std::string::npos);
    REQUIRE(!client.stat("/out"));
  });
}

}  // namespace pif::sort
