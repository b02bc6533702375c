// Copy-class tools, which make output record x of input record x.
#include "pif/tool/copy_class.h"

#include <CLI/CLI.hpp>

#include "libtool/tool_fixtures.h"

namespace pif::tool {
namespace {

using sim::must;
using Bytes = std::vector<std::byte>;

CreateOptions options_of(const Format& format, std::uint32_t bevy) {
  CreateOptions options;
  options.format = format;
  options.width = 4;
  options.bevy = bevy;
  return options;
}

// "line 0\n", "line 1\n", ...; every 7th is longer.
RecordBatch lines_of(std::size_t count) {
  RecordBatch batch;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(i % 7 == 0 ? 3000 : 0, 'x') + "\n";
    batch.lengths.push_back(static_cast<std::uint32_t>(line.size()));
    for (const char c : line) batch.data.push_back(static_cast<std::byte>(c));
  }
  return batch;
}

// The letters as capitals.
Status upper(RowBatch& batch) {
  for (std::byte& c : batch.data) {
    if (c >= std::byte{'a'} && c <= std::byte{'z'}) c ^= std::byte{0x20};
  }
  return {};
}

// Every record twice as long, or gone but for its end.
Status change_lengths(RowBatch& batch) {
  RowBatch out = batch;
  out.lengths.clear();
  out.data.clear();
  batch.for_each([&](std::span<std::byte> record) {
    const bool shrinks = record.size() > 100;
    const auto kept = shrinks ? record.last(1) : record;
    if (!shrinks) out.data.insert(out.data.end(), record.begin(), record.end() - 1);
    out.data.insert(out.data.end(), kept.begin(), kept.end());
    out.lengths.push_back(static_cast<std::uint32_t>(shrinks ? 1 : 2 * record.size() - 1));
  });
  batch = std::move(out);
  return {};
}

RecordBatch changed(const RecordBatch& in, const BatchFunction& f) {
  RowBatch batch;
  batch.count = in.lengths.size();
  batch.lengths = in.lengths;
  batch.data = in.data;
  must(f(batch));
  return {batch.lengths, batch.data};
}

// Runs the whole tool on /in, which gives /out.
void run_tool(Client& client, const Tool& tool, const std::string& options = {}) {
  CLI::App app;
  tool.options(app);
  app.parse("/in /out" + options, false);
  Controller controller(client, sim::sim_controller());
  CHECK(must(tool.control(controller)) == ExitCode::kDone);
}

RecordBatch read_all(Client& client, const std::string& path) {
  File file = must(client.open(path));
  RecordBatch all;
  while (true) {
    const RecordBatch some = must(file.read_batch(1000));
    if (some.lengths.empty()) return all;
    all.lengths.insert(all.lengths.end(), some.lengths.begin(), some.lengths.end());
    all.data.insert(all.data.end(), some.data.begin(), some.data.end());
  }
}

// threads: 0: F is called for one batch at a time.
void check_lines(std::uint32_t bevy, std::size_t count, const BatchFunction& f, unsigned threads = 0) {
  const Tool tool = copy_class_tool("tool", "for a test", f, threads == 0 ? Calls::kOneAtATime : Calls::kAtOnce);
  sim::ToolFixture fixture(1, 4, tool.work);
  fixture.run([&](Client& client) {
    const RecordBatch lines = lines_of(count);
    File in = must(client.create("/in", options_of(Format::lines(), bevy)));
    must(in.write_batch(lines.lengths, lines.data));
    must(in.commit());
    run_tool(client, tool, threads == 0 ? "" : " --threads " + std::to_string(threads));
    const RecordBatch wanted = changed(lines, f);
    const RecordBatch got = read_all(client, "/out");
    CHECK(got.lengths == wanted.lengths);
    CHECK(got.data == wanted.data);
    const FileLength file_length = must(client.stat("/out")).file_length;
    CHECK(file_length == FileLength{count, wanted.data.size()});
  });
}

}  // namespace

TEST_CASE("the shortest tool works on lines, with and without bevies") {
  for (const std::uint32_t bevy : {0u, 2u}) {
    for (const std::size_t count : {1, 5, 1000}) check_lines(bevy, count, upper);
  }
}

TEST_CASE("a copy-class tool may change the lengths of records, with and without bevies") {
  for (const std::uint32_t bevy : {0u, 2u}) {
    for (const std::size_t count : {1, 5, 1000}) check_lines(bevy, count, change_lengths);
  }
}

TEST_CASE("a copy-class tool makes the same with any number of threads, and of batches") {
  for (const unsigned threads : {4u, 8u, 12u}) {  // on a machine of four workers
    for (const std::size_t count : {1, 1000, 60'000}) check_lines(0, count, change_lengths, threads);
  }
  check_lines(2, 1000, upper, 12);
}

TEST_CASE("a batch that cannot be made ends a tool of several threads, without an output") {
  const BatchFunction f = [](RowBatch& batch) -> Status {
    if (batch.first == 0) return {};
    return fail(Code::kInvalid, "not this one");
  };
  const Tool tool = copy_class_tool("tool", "for a test", f, Calls::kAtOnce);
  sim::ToolFixture fixture(1, 4, tool.work);
  fixture.run([&](Client& client) {
    const RecordBatch lines = lines_of(60'000);
    File in = must(client.create("/in", options_of(Format::lines(), 0)));
    must(in.write_batch(lines.lengths, lines.data));
    must(in.commit());
    CLI::App app;
    tool.options(app);
    app.parse("/in /out --threads 12", false);
    Controller controller(client, sim::sim_controller());
    const auto done = tool.control(controller);
    REQUIRE(!done);
    CHECK(done.error().to_string().find("not this one") != std::string::npos);
    CHECK(!client.stat("/out"));
  });
}

TEST_CASE("a copy-class tool makes a file of fixed records with bevies as long as its source, a short last one too") {
  const Tool tool = copy_class_tool("tool", "for a test", upper);
  sim::ToolFixture fixture(1, 4, tool.work);
  fixture.run([&](Client& client) {
    for (const std::size_t size : {3u, 40u, 4001u, 40007u}) {
      Bytes bytes(size, std::byte{'q'});
      File in = must(client.create("/in", options_of(Format::fixed(10), 2)));
      must(in.write(bytes));
      must(in.commit());
      run_tool(client, tool);
      File out = must(client.open("/out"));
      CHECK(must(out.file_length()) == FileLength{(size + 9) / 10, size});
      Bytes got(size);
      REQUIRE(must(out.pread(got, 0)) == size);
      CHECK(got == Bytes(size, std::byte{'Q'}));
    }
  });
}

}  // namespace pif::tool
