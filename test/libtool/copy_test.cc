#include <catch2/catch.hpp>

#include <numeric>

#include "../../tools/pif_copy/copy.cc"
#include "libtool/tool_fixtures.h"

namespace pif {
namespace {

using sim::get;
using sim::must;
using sim::put;
using sim::random_bytes;

// A file system of `lfss` LFSs, a file in it, and pif-copy.
struct Fixture : sim::ToolFixture {
  explicit Fixture(unsigned lfss, std::uint64_t seed = 1) : ToolFixture(seed, lfss, copy::work) {}
};

CreateOptions laid_out(const Format& format, std::vector<std::uint32_t> nodes, std::vector<std::uint32_t> bevies = {}) {
  CreateOptions options;
  options.format = format;
  options.nodes = std::move(nodes);
  options.bevies = std::move(bevies);
  options.mode = 0640;
  options.attributes = {{"header", "P4"}};
  return options;
}

RecordBatch variable_records(std::size_t count) {
  RecordBatch batch;
  std::uint32_t seed = 7;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    batch.lengths.push_back(i % 50 == 49 ? 3000 : (seed >> 20) % 40);
  }
  batch.data = random_bytes(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::size_t{0}), 99);
  return batch;
}

Result<tool::ExitCode> copy_file(Client& client, const copy::CopyOptions& wanted, tool::Report* report = nullptr,
                                 bool apart = false) {
  tool::ControllerOptions options = sim::sim_controller();
  options.apart = apart;
  tool::Controller controller(client, options);
  auto code = copy::control(controller, wanted);
  if (report != nullptr) *report = controller.report();
  return code;
}

copy::CopyOptions to_nodes(std::vector<std::string> nodes) {
  copy::CopyOptions wanted;
  wanted.source = "/a";
  wanted.target = "/b";
  wanted.nodes = std::move(nodes);
  return wanted;
}

std::vector<std::uint32_t> first_nodes(unsigned width) {
  std::vector<std::uint32_t> nodes(width);
  std::iota(nodes.begin(), nodes.end(), 1);
  return nodes;
}

std::vector<std::string> names_of(const std::vector<std::uint32_t>& nodes) {
  std::vector<std::string> names;
  for (const auto node : nodes) names.push_back(std::to_string(node));
  return names;
}

TEST_CASE("a copy to any width holds the same bytes") {
  for (unsigned from = 1; from <= 8; from += 1) {
    Fixture fixture(8, from);
    fixture.run([&](Client& client) {
      const auto bytes = random_bytes(100 * 137 + 33, from);  // a short last record
      put(client, "/a", laid_out(Format::fixed(100), first_nodes(from)), bytes);
      for (unsigned to = 1; to <= 8; ++to) {
        must(copy_file(client, to_nodes(names_of(first_nodes(to)))));
        REQUIRE(get(client, "/b") == bytes);
        REQUIRE(must(client.stat("/b")).nodes.size() == to);
      }
    });
  }
}

TEST_CASE("workers that talk over the network only copy the same bytes") {
  Fixture fixture(5);
  fixture.run([&](Client& client) {
    const auto bytes = random_bytes(100 * 1370 + 33, 3);
    put(client, "/a", laid_out(Format::fixed(100), first_nodes(3)), bytes);
    must(copy_file(client, to_nodes(names_of(first_nodes(5))), nullptr, true));
    REQUIRE(get(client, "/b") == bytes);
  });
  // Everybody's mail came at the port that was told by way of the controller.
  CHECK(std::count_if(fixture.names.begin(), fixture.names.end(),
                      [](const auto& name) { return name.first.starts_with("port of "); }) == 5);
}

TEST_CASE("a copy of so few records that the first LFS has none has its length") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    const auto bytes = random_bytes(13, 3);
    put(client, "/a", laid_out(Format::fixed(13), {1, 2, 3, 4}, {2, 2}), bytes);
    must(copy_file(client, to_nodes({})));
    REQUIRE(get(client, "/b") == bytes);
    copy::CopyOptions other_order = to_nodes({"4", "3", "2", "1"});
    must(copy_file(client, other_order));
    REQUIRE(get(client, "/b") == bytes);
  });
}

TEST_CASE("a copy keeps format, mode, attributes, LFSs and bevies") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    const auto bytes = random_bytes(5000, 3);
    put(client, "/a", laid_out(Format::fixed(7), {3, 1, 4, 2}, {2, 2}), bytes);
    must(copy_file(client, to_nodes({})));
    const Entry a = must(client.stat("/a"));
    const Entry b = must(client.stat("/b"));
    REQUIRE(b.nodes == a.nodes);
    REQUIRE(b.bevies == a.bevies);
    REQUIRE(b.format == a.format);
    REQUIRE(b.mode == a.mode);
    REQUIRE(b.attributes == a.attributes);
    REQUIRE(b.file_length == a.file_length);
    REQUIRE(get(client, "/b") == bytes);
  });
}

TEST_CASE("records come to layouts with bevies, and back") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    const auto bytes = random_bytes(64 * 500 + 1, 5);
    put(client, "/a", laid_out(Format::fixed(64), {1, 2, 3}), bytes);
    auto wanted = to_nodes({"1", "2", "3", "4"});
    wanted.bevy = 2;
    must(copy_file(client, wanted));
    REQUIRE(get(client, "/b") == bytes);
    wanted.source = "/b";
    wanted.target = "/c";
    wanted.nodes = {"2", "1"};
    wanted.bevy = 0;
    must(copy_file(client, wanted));
    REQUIRE(get(client, "/c") == bytes);
  });
}

TEST_CASE("variable records and lines keep their lengths in every layout") {
  for (const Format format : {Format::variable(), Format::lines()}) {
    Fixture fixture(5);
    fixture.run([&](Client& client) {
      RecordBatch records = variable_records(700);
      if (format.kind == RecordKind::kDelimited) {
        for (auto& b : records.data) b = b == std::byte{'\n'} ? std::byte{'x'} : b;
        std::size_t end = 0;
        for (auto& length : records.lengths) {
          length = std::max(length, 1u);
          end += length;
        }
        records.data.resize(end, std::byte{'y'});
        end = 0;
        for (const auto length : records.lengths) records.data[(end += length) - 1] = std::byte{'\n'};
      }
      auto file = must(client.create("/a", laid_out(format, {1, 2, 3})));
      must(file.write_batch(records.lengths, records.data));
      must(file.commit());
      for (const std::vector<std::string>& nodes :
           {std::vector<std::string>{"1", "2", "3"}, {"5", "4"}, {"3", "1", "2"}, {"1", "2", "3", "4", "5"}}) {
        must(copy_file(client, to_nodes(nodes)));
        auto copied = must(client.open("/b"));
        const RecordBatch back = must(copied.read_batch(1000));
        REQUIRE(back.lengths == records.lengths);
        REQUIRE(back.data == records.data);
      }
    });
  }
}

TEST_CASE("an empty file, and one with fewer records than LFSs, are copied") {
  Fixture fixture(6);
  fixture.run([&](Client& client) {
    must(client.create_empty("/a", laid_out(Format::fixed(10), first_nodes(3))));
    must(copy_file(client, to_nodes({"4", "5"})));
    REQUIRE(get(client, "/b").empty());
    REQUIRE(must(client.stat("/b")).mode == 0640);
    const auto bytes = random_bytes(15, 1);
    put(client, "/a", laid_out(Format::fixed(10), first_nodes(6)), bytes);
    must(copy_file(client, to_nodes({"6", "5", "4", "3", "2", "1"})));
    REQUIRE(get(client, "/b") == bytes);
    must(copy_file(client, to_nodes({})));
    REQUIRE(get(client, "/b") == bytes);
  });
}

TEST_CASE("bytes moved between nodes are counted exactly") {
  Fixture fixture(4);
  fixture.run([&](Client& client) {
    const auto bytes = random_bytes(100 * 400, 1);
    put(client, "/a", laid_out(Format::fixed(100), {1, 2}), bytes);
    tool::Report report;
    must(copy_file(client, to_nodes({"1", "2"}), &report));
    REQUIRE(report.bytes_moved == 0);
    // Records 0, 4, 8, ... stay on node 1 and 1, 5, 9, ... on node 2: half of them move.
    must(copy_file(client, to_nodes({"1", "2", "3", "4"}), &report));
    REQUIRE(report.bytes_moved == bytes.size() / 2);
    REQUIRE(report.bytes_written_local == bytes.size());
    must(copy_file(client, to_nodes({"3", "4"}), &report));
    REQUIRE(report.bytes_moved == bytes.size());
  });
}

TEST_CASE("an existing target is kept with --no-clobber and replaced without") {
  Fixture fixture(2);
  fixture.run([&](Client& client) {
    const auto a = random_bytes(1000, 1);
    const auto b = random_bytes(10, 2);
    put(client, "/a", laid_out(Format::fixed(100), {1, 2}), a);
    put(client, "/b", laid_out(Format::fixed(100), {1, 2}), b);
    auto wanted = to_nodes({});
    wanted.no_clobber = true;
    const auto refused = copy_file(client, wanted);
    REQUIRE(!refused);
    REQUIRE(refused.error().code == Code::kExists);
    REQUIRE(get(client, "/b") == b);
    wanted.no_clobber = false;
    must(copy_file(client, wanted));
    REQUIRE(get(client, "/b") == a);
  });
}

TEST_CASE("wrong options are refused with a reason") {
  Fixture fixture(2);
  fixture.run([&](Client& client) {
    put(client, "/a", laid_out(Format::fixed(100), {1, 2}), random_bytes(1000, 1));
    for (const std::vector<std::string>& nodes : {std::vector<std::string>{"1", "1"}, {"lfs9"}}) {
      REQUIRE(copy_file(client, to_nodes(nodes)).error().code == Code::kInvalid);
    }
    auto wanted = to_nodes({});
    for (const std::uint32_t bevy : {2u, 1u << 31, UINT32_MAX - 1}) {
      wanted.bevy = bevy;
      REQUIRE(copy_file(client, wanted).error().code == Code::kInvalid);
    }
    wanted = to_nodes({});
    wanted.source = "a";
    REQUIRE(copy_file(client, wanted).error().code == Code::kInvalid);
    REQUIRE(client.stat("/b").error().code == Code::kNotFound);
  });
}

}  // namespace
}  // namespace pif
