// Records that get new numbers, tools that make any number of them of each, and records that are fetched by number.
#include "pif/tool/numbering.h"

#include <random>

#include <CLI/CLI.hpp>

#include "libtool/tool_fixtures.h"
#include "pif/tool/fetch.h"
#include "pif/tool/key_ranges.h"
#include "pif/tool/partition.h"
#include "pif/tool/records_tool.h"

namespace pif::tool {
namespace {

using sim::must;
using Strings = std::vector<std::string>;

CreateOptions options_of(const Format& format, std::uint32_t width, std::uint32_t bevy) {
  CreateOptions options;
  options.format = format;
  options.width = width;
  options.bevy = bevy;
  return options;
}

// Record i is i as text, and some x.
Strings strings_of(std::size_t count) {
  Strings strings;
  for (std::size_t i = 0; i < count; ++i) strings.push_back(fmt::format("{} {}", i, std::string(i % 13, 'x')));
  return strings;
}

void put(Client& client, const std::string& path, const Strings& records, std::uint32_t width, std::uint32_t bevy) {
  File file = must(client.create(path, options_of(Format::variable(), width, bevy)));
  RecordBatch batch;
  for (const std::string& record : records) {
    batch.lengths.push_back(static_cast<std::uint32_t>(record.size()));
    for (const char c : record) batch.data.push_back(static_cast<std::byte>(c));
  }
  must(file.write_batch(batch.lengths, batch.data));
  must(file.commit());
}

Strings get(Client& client, const std::string& path) {
  File file = must(client.open(path));
  Strings records;
  while (true) {
    const RecordBatch batch = must(file.read_batch(1000));
    if (batch.lengths.empty()) return records;
    const char* at = reinterpret_cast<const char*>(batch.data.data());
    for (const std::uint32_t length : batch.lengths) {
      records.emplace_back(at, length);
      at += length;
    }
  }
}

std::string_view text_of(std::span<const std::byte> record) {
  return {reinterpret_cast<const char*>(record.data()), record.size()};
}

TEST_CASE("numbering: every row learns the number of the first record that comes of it") {
  for (const std::uint32_t most : {1u, 2u, 300u, 100'000u}) {
    for (const auto& [width, bevy] : {std::pair(1u, 0u), std::pair(3u, 0u), std::pair(4u, 2u)}) {
      constexpr std::size_t kRecords = 2501;
      std::vector<std::uint32_t> counts(kRecords);
      std::mt19937 random(most + width);
      for (auto& count : counts) count = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % (most + 1) : 0);
      sim::ToolFixture fixture(width, 4, [&](Worker& worker) -> Status {
        PIF_TRY_VALUE(Team team, Team::join(worker));
        PIF_TRY_VALUE(Input* const input, worker.input(0));
        Numbering numbering(worker, team, *input);
        const Range rows = numbering.rows();
        std::vector<std::uint32_t> own;
        for (Row row = rows.begin; row < rows.end; ++row)
          own.push_back(counts[input->layout().record_at({input->index(), row})]);
        PIF_TRY_VALUE(const auto numbers, numbering.next(own));
        std::uint64_t sum = 0;
        for (RecordNumber n = 0; n < kRecords; ++n) {
          const Cell cell = input->layout().locate(n);
          if (input->is_here() && cell.lfs == input->index() && numbers[cell.row] != sum)
            return fail(Code::kInternal, fmt::format("record {} has number {}, not {}", n, numbers[cell.row], sum));
          sum += counts[n];
        }
        const bool is_right = numbering.is_over() && numbering.records() == sum;
        return is_right ? Status() : fail(Code::kInternal, "the number of records");
      });
      fixture.run([&, width = width, bevy = bevy](Client& client) {
        put(client, "/in", strings_of(kRecords), width, bevy);
        Controller controller(client, sim::sim_controller());
        must(controller.open("/in"));
        Job job;
        job.nodes = {1, 2, 3, 4};  // some have no rows
        must(controller.run(job));
      });
    }
  }
}

// Of record n: n % 4 copies, each with its place. Counts what it saw.
class Copies final : public RecordFunction {
 public:
  Status take(RecordNumber number, std::span<const std::byte> record, Records& out) override {
    seen_ += 1;
    if (text_of(record).substr(0, text_of(record).find(' ')) != std::to_string(number))
      return fail(Code::kInternal, "another record");
    for (std::uint64_t i = 0; i < number % 4; ++i) out.add(fmt::format("{}/{}", text_of(record), i));
    return {};
  }
  std::string found() override { return std::to_string(seen_); }
  Status add(std::string_view other) override {
    seen_ += std::stoull(std::string(other));
    return {};
  }

 private:
  std::uint64_t seen_ = 0;
};

TEST_CASE("numbering: a tool that makes any number of records of each, in file order, over any LFSs") {
  std::string seen;
  RecordsTool wanted;
  wanted.name = "copies";
  wanted.make = [](std::string_view) { return std::make_unique<Copies>(); };
  wanted.finish = [&](Controller&, RecordFunction& all) -> Status {
    seen = all.found();
    return {};
  };
  const WorkerFunction work = records_tool(wanted).work;
  for (const bool has_threads : {false, true}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3000}}) {
      Strings expected;
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < i % 4; ++k) expected.push_back(fmt::format("{}/{}", strings_of(count)[i], k));
      sim::ToolFixture fixture(count + 1, 4, work, {}, {.steps_max = UINT64_MAX / 2}, has_threads);
      fixture.run([&](Client& client) {
        put(client, "/in", strings_of(count), 3, 0);
        for (const std::string options : {"", " --width 1", " --width 4 --bevy 2"}) {
          const Tool tool = records_tool(wanted);
          CLI::App app;
          tool.options(app);
          app.parse("/in /out" + options, false);
          Controller controller(client, sim::sim_controller());
          CHECK(must(tool.control(controller)) == ExitCode::kDone);
          INFO(count << options);
          CHECK(get(client, "/out") == expected);
          CHECK(seen == std::to_string(count));
        }
      });
    }
  }
}

TEST_CASE("numbering: records are fetched from whatever worker has them, as often as they are asked for") {
  constexpr std::size_t kRecords = 3001;
  const Strings all = strings_of(kRecords);
  for (const auto& [width, bevy] : {std::pair(1u, 0u), std::pair(3u, 0u), std::pair(4u, 2u)}) {
    sim::ToolFixture fixture(width + 10, 4, [&](Worker& worker) -> Status {
      PIF_TRY_VALUE(Team team, Team::join(worker));
      PIF_TRY_VALUE(Input* const input, worker.input(0));
      std::mt19937 random(worker.rank());
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{700}, std::size_t{20'000}}) {
        std::vector<RecordNumber> numbers(worker.rank() == 2 ? 0 : count);
        for (auto& number : numbers) number = random() % kRecords;
        PIF_TRY_VALUE(RowBatch batch, fetch(worker, team, *input, numbers));
        std::size_t i = 0;
        bool is_right = batch.count == numbers.size();
        batch.for_each([&](auto record) { is_right = is_right && text_of(record) == all[numbers[i++]]; });
        if (!is_right) return fail(Code::kInternal, fmt::format("other records than those of {} numbers", count));
      }
      return {};
    });
    fixture.run([&, width = width, bevy = bevy](Client& client) {
      put(client, "/in", all, width, bevy);
      Controller controller(client, sim::sim_controller());
      must(controller.open("/in"));
      Job job;
      job.nodes = {1, 2, 3, 4};
      must(controller.run(job));
      CHECK(controller.report().bytes_messaged > 0);
    });
  }
}

TEST_CASE("numbering: ranges of keys give each worker its share, in the order of keys") {
  constexpr std::size_t kRecords = 4000;
  const auto key_of = [](std::span<const std::byte> record) {
    return text_of(record).substr(0, text_of(record).find(' '));
  };
  sim::ToolFixture fixture(4, 4, [&](Worker& worker) -> Status {
    PIF_TRY_VALUE(Team team, Team::join(worker));
    PIF_TRY_VALUE(Input* const input, worker.input(0));
    PIF_TRY_VALUE(const auto ranges, KeyRanges::sample(worker, team, *input, key_of));
    const auto owner = [&](auto, auto record) { return ranges.owner(key_of(record)); };
    PIF_TRY_VALUE(auto mine, Partition::make(worker, team, *input, owner));
    Strings keys;
    for (RowBatch batch;;) {
      PIF_TRY_VALUE(const bool more, mine.next(batch));
      if (!more) break;
      batch.for_each([&](auto record) { keys.emplace_back(key_of(record)); });
    }
    std::sort(keys.begin(), keys.end());
    worker.set_result(fmt::format("{}", fmt::join(keys, " ")));
    return {};
  });
  fixture.run([&](Client& client) {
    put(client, "/in", strings_of(kRecords), 3, 0);
    Controller controller(client, sim::sim_controller());
    must(controller.open("/in"));
    Job job;
    job.nodes = {1, 2, 3, 4};
    const auto results = must(controller.run(job));
    Strings expected;
    for (std::size_t i = 0; i < kRecords; ++i) expected.push_back(std::to_string(i));
    std::sort(expected.begin(), expected.end());
    CHECK(fmt::format("{}", fmt::join(results, " ")) == fmt::format("{}", fmt::join(expected, " ")));
    for (const std::string& result : results) CHECK(std::count(result.begin(), result.end(), ' ') > 700);
  });
}

TEST_CASE("numbering: a record that is not there cannot be fetched; rows are gone over again, and inputs given back") {
  sim::ToolFixture fixture(5, 2, [](Worker& worker) -> Status {
    PIF_TRY_VALUE(Input * input, worker.input(0));
    RowBatch batch;
    std::uint64_t rows = 0;
    const auto go_on = [&]() -> Status {
      for (bool more = true; more; rows += more ? batch.count : 0) {
        PIF_TRY_VALUE(more, input->next(batch));
      }
      return {};
    };
    PIF_TRY(go_on());
    input->rewind();
    PIF_TRY(go_on());
    input->go_over({3, 5});
    PIF_TRY(go_on());
    if (rows != 2 * input->rows() + 2) return fail(Code::kInternal, fmt::format("{} rows", rows));
    for (int i = 0; i < 3; ++i) {
      worker.close_input(0);
      PIF_TRY_VALUE(input, worker.input(0));
      PIF_TRY(go_on());
    }
    PIF_TRY_VALUE(Team team, Team::join(worker));
    const std::vector<RecordNumber> numbers = {100};
    PIF_TRY(fetch(worker, team, *input, numbers));
    return {};
  });
  fixture.run([&](Client& client) {
    put(client, "/in", strings_of(100), 2, 0);
    Controller controller(client, sim::sim_controller());
    must(controller.open("/in"));
    const auto result = controller.run({});
    REQUIRE_FALSE(result);
    CHECK(result.error().text.find("/in has no record 100: it has 100") != std::string::npos);
  });
}

}  // namespace
}  // namespace pif::tool
