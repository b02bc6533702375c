// Components that releases before parity made of files with bevies: read with dense rows, changed by nobody.
#include "node.h"

#include "../../lfs/src/redo/recovery.h"
#include "../../lfs/src/store/catalogue.h"
#include "../../lfs/src/store/convert.h"
#include "../../lfs/src/store/root.h"
#include "held_executor.h"
#include "older_log.h"
#include "pif/parity/older_rows.h"
#include "pif/wire/convert.h"

using namespace pif;
using namespace pif::lfs;
using namespace pif::lfs::test;

namespace {

const std::vector<std::uint32_t> kBevies = {3, 3};

TestFile older_file(std::uint64_t id, Format format, std::uint32_t index) {
  TestFile file{.id = id, .format = format, .nodes = {11, 12, 13, 14, 15, 16}, .index = index, .bevies = kBevies};
  file.form = 0;
  file.nodes[index] = kNode;
  return file;
}

parity::OlderRows stored_rows(const TestFile& file) {
  return parity::OlderRows::of(wire::layout_of(file.shape().layout()).value(), file.index);
}

// Rows of 0 to 9 bytes, or of `length` each, and the last one of 60.
std::vector<std::string> some_rows(std::size_t count, std::size_t length = 0) {
  std::vector<std::string> out;
  for (unsigned i = 0; i < count; ++i) out.push_back(pattern(length == 0 ? i % 10 : length, i));
  if (length != 0) out.back().resize(60);
  return out;
}

std::string joined(const std::vector<std::string>& rows) {
  std::string out;
  for (const auto& row : rows) out += row;
  return out;
}

component::Tail write_stored(const TestFile& file, const std::vector<std::string>& rows, component::Files& files) {
  const auto stored = stored_rows(file);
  component::Writer writer(component::Shape::of(FileId(file.id), file.format, 0), {}, files);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(rows[i]));
    if (file.format.is_fixed()) {
      const auto last = rows[i].size() == file.format.record_length ? 0 : static_cast<std::uint32_t>(rows[i].size());
      REQUIRE_OK(writer.write_rows(stored.stored(i), 1, {bytes.data(), file.format.record_length}, last));
    } else {
      std::vector<std::uint32_t> lengths(stored.stored(i) - writer.rows(), 0);
      lengths.push_back(static_cast<std::uint32_t>(rows[i].size()));
      REQUIRE_OK(writer.append_rows(lengths, bytes));
    }
  }
  return writer.finish().value();
}

// As an earlier release left it on a node that does not run.
proto::ComponentState plant(Node& node, const TestFile& file, const std::vector<std::string>& rows) {
  const auto storage = component::make_memory_storage(node.disk);
  const auto stem = component::stem(node.root(), FileId(file.id));
  auto files = component::open_files(*storage, stem, file.format, component::OpenMode::kCreate).value();
  proto::ComponentState state;
  *state.mutable_shape() = file.shape();
  state.set_state(kCommitted);
  set_tail(state, write_stored(file, rows, files));
  REQUIRE_OK(component::sync(files));
  REQUIRE_OK(storage->sync_folder(stem.substr(0, stem.rfind('/'))));
  const auto store = kv::open_memory(node.catalogue);
  auto transaction = store->write().value();
  REQUIRE_OK(catalogue::put(*transaction, state));
  REQUIRE_OK(transaction->commit());
  return state;
}

using Planting = std::function<void(Node&)>;
void with_planted(const Planting& planting, const std::function<void(Peer&, Node&)>& body,
                  const std::function<void(Node&)>& prepare = {}) {
  with_node(
      [&](Peer& peer, Node& node) {
        REQUIRE_OK(peer.put(TestFile{.id = 1}, pattern(500, 1)));
        node.kill();
        planting(node);
        node.start();
        body(peer, node);
      },
      1, prepare);
}

std::vector<proto::ComponentState> listed(Peer& peer) {
  auto packet = peer.request(0, kMayManage);
  packet.envelope.mutable_list_components()->set_limit(1000);
  const auto reply = peer.call(std::move(packet)).value();
  const auto& components = reply.envelope.list_components_reply().components();
  return {components.begin(), components.end()};
}

std::vector<std::string> scratch(Node& node) { return node.disk->files(scratch_folder(node.root())); }

template <typename Fill>
Result<net::Packet> ask(Peer& peer, std::uint64_t file, std::uint32_t rights, const Fill& fill,
                        const std::string& body = {}) {
  auto packet = peer.request(file, rights);
  fill(packet.envelope);
  packet.body = buffer_of(body);
  return peer.call(std::move(packet));
}

template <typename T>
void check_refused(const Result<T>& result, std::uint64_t file) {
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::kUnsupported);
  CHECK_THAT(result.error().text,
             Catch::StartsWith("unprotected: file " + std::to_string(file)) && Catch::Contains("`pif protect FILE`"));
}

}  // namespace

TEST_CASE("rows of an older component of fixed records are read without the empty ones, from every place in a bevy") {
  for (std::uint32_t index = 0; index < 6; ++index) {
    CAPTURE(index);
    const auto file = older_file(7, Format::fixed(100), index);
    const auto rows = some_rows(200, 100);
    with_planted([&](Node& node) { plant(node, file, rows); },
                 [&](Peer& peer, Node& node) {
                   CHECK(peer.read(7, 0, 200).value() == joined(rows));
                   CHECK(peer.read(7, 199, 5).value() == rows[199]);
                   CHECK(peer.read(7, 3, 2, 50).value() == rows[3] + rows[53]);
                   CHECK(code_of(peer.read(7, 200, 1)) == Code::kEndOfFile);
                   CHECK(peer.read(1, 0, 5).value() == pattern(500, 1));
                   CHECK(scratch(node).empty());
                   CHECK(node.check().value().damages.empty());
                 });
  }
}

TEST_CASE("rows of an older component of variable records are read without the empty ones, and so are their offsets") {
  const auto file = older_file(7, Format::variable(), 4);
  const auto rows = some_rows(3000);
  with_planted([&](Node& node) { plant(node, file, rows); },
               [&](Peer& peer, Node& node) {
                 for (const std::uint64_t first : {0, 1, 511, 2990}) {
                   const std::vector<std::string> some(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                                       rows.begin() + static_cast<std::ptrdiff_t>(first) + 10);
                   CHECK(peer.read(7, first, 10).value() == variable_body(some));
                 }
                 const auto offsets = ask(peer, 7, kMayRead, [](auto& e) {
                                        e.mutable_offsets()->set_file(7);
                                        for (const std::uint64_t row : {1, 10, 3000})
                                          e.mutable_offsets()->add_rows(row);
                                      }).value();
                 std::array<std::uint64_t, 3> found{};
                 REQUIRE(offsets.body.size() == sizeof(found));
                 std::memcpy(found.data(), offsets.body.data(), sizeof(found));
                 CHECK(found == std::array<std::uint64_t, 3>{0, 45, 13500});
                 CHECK(node.check().value().damages.empty());
               });
}

TEST_CASE("descriptors of an older component are those of its dense copy, which their holder cannot write") {
  for (const Format format : {Format::fixed(100), Format::variable()}) {
    const auto file = older_file(7, format, 2);
    const auto rows = some_rows(700, format.is_fixed() ? 100 : 0);
    with_planted([&](Node& node) { plant(node, file, rows); },
                 [&](Peer& peer, Node& node) {
                   auto reply = peer.attach(7).value();
                   const auto& state = reply.envelope.attach_reply().state();
                   CHECK(state.rows() == 700);
                   CHECK(state.bytes() == joined(rows).size());
                   const auto storage = component::make_memory_storage(node.disk);
                   auto files = component::adopt(*storage, format, std::move(reply.handles)).value();
                   const component::Reader reader(component::Shape::of(FileId(7), format, 0), tail_of(state), files);
                   std::string bytes(state.bytes(), '\0');
                   REQUIRE_OK(reader.read_bytes(0, std::as_writable_bytes(std::span(bytes))));
                   CHECK(bytes == joined(rows));
                   CHECK(reader.check().value().empty());
                   CHECK(code_of(files.data->write(0, std::as_bytes(std::span(bytes)))) == Code::kReadOnly);
                   CHECK(code_of(files.sums->write(0, std::as_bytes(std::span(bytes)))) == Code::kReadOnly);
                 });
  }
}

TEST_CASE("others are told dense lengths of older components; the files are checked as they are") {
  const auto fixed = older_file(7, Format::fixed(100), 0);
  const auto variable = older_file(8, Format::variable(), 5);
  std::vector<proto::ComponentState> stored;
  const auto planting = [&](Node& node) {
    stored = {plant(node, fixed, some_rows(90, 100)), plant(node, variable, some_rows(90))};
  };
  with_planted(planting, [&](Peer& peer, Node& node) {
    CHECK(stored[0].rows() == 135);  // 0 is empty, and every third one; 134 is a row
    const auto states = listed(peer);
    REQUIRE(states.size() == 3);
    CHECK(states[1].rows() == 90);
    CHECK(states[1].bytes() == 8960);
    CHECK(states[2].rows() == 90);
    CHECK(states[2].bytes() == stored[1].bytes());
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const auto id = stored[i].shape().file();
      const auto check = [&] {
        return ask(peer, 0, kMayManage, [&](auto& e) {
          e.mutable_check_component()->set_file(id);
          e.mutable_check_component()->set_sums(true);
        });
      };
      const auto reply = check().value().envelope.check_component_reply();
      CHECK(reply.damages().empty());
      CHECK(reply.bytes() == stored[i].bytes());
      node.disk->flip_bit(component::stem(node.root(), FileId(id)) + ".dat", 150, 3);
      CHECK(check().value().envelope.check_component_reply().damages_size() == 1);
    }
    CHECK(catalogue::get(*kv::open_memory(node.catalogue), FileId(7)).value()->rows() == 135);
  });
}

TEST_CASE("an older component is changed by nobody, and none is made") {
  const auto file = older_file(7, Format::fixed(100), 0);
  const auto rows = some_rows(90, 100);
  const auto planting = [&](Node& node) { plant(node, file, rows); };
  with_planted(planting, [&](Peer& peer, Node& node) {
    const auto wide = file.shape();
    const auto row = pattern(100, 9);
    check_refused(peer.call(peer.overwrite_request(7, 1, 1, row)), 7);
    for (const std::uint64_t id : {7, 8}) {
      auto made = file;
      made.id = id;
      const auto shape = made.shape();
      CAPTURE(id);
      check_refused(peer.attach_new(made), id);
      check_refused(ask(peer, id, kMayRead | kMayWrite,
                        [&](auto& e) {
                          e.mutable_reserve()->set_file(id);
                          e.mutable_reserve()->set_records(1);
                          e.mutable_reserve()->set_bytes(100);
                          *e.mutable_reserve()->mutable_shape() = shape;
                        }),
                    id);
      check_refused(ask(
                        peer, id, kMayRead | kMayWrite,
                        [&](auto& e) {
                          e.mutable_append_rows()->set_file(id);
                          e.mutable_append_rows()->set_first(90);
                          e.mutable_append_rows()->set_count(1);
                          e.mutable_append_rows()->set_generation(1);
                          e.mutable_append_rows()->mutable_base()->set_records(100);
                          e.mutable_append_rows()->mutable_base()->set_bytes(10000);
                          *e.mutable_append_rows()->mutable_shape() = shape;
                        },
                        row),
                    id);
      check_refused(ask(
                        peer, id, kMayCreate | kMayRead,
                        [&](auto& e) {
                          *e.mutable_write()->mutable_shape() = shape;
                          e.mutable_write()->set_count(1);
                        },
                        row),
                    id);
      check_refused(peer.seal(made, id == 7 ? 90 : 0, 0), id);
    }
    CHECK(peer.read(7, 0, 90).value() == joined(rows));
    CHECK(listed(peer).size() == 2);
    CHECK(node.check().value().damages.empty());
    REQUIRE_OK(peer.settle({}, {7}));  // but it can be removed
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kStaleFile);
  });
}

TEST_CASE("damage in an older component is told by who reads it, and hurts no other") {
  const auto planting = [](Node& node) {
    plant(node, older_file(7, Format::fixed(100), 1), some_rows(200, 100));
    plant(node, older_file(8, Format::variable(), 1), some_rows(200));
    plant(node, older_file(9, Format::variable(), 1), some_rows(200));
    node.disk->flip_bit(component::stem(node.root(), FileId(7)) + ".dat", 10000, 0);
    node.disk->flip_bit(component::stem(node.root(), FileId(8)) + ".idx", 100, 0);
  };
  with_planted(planting, [](Peer& peer, Node& node) {
    for (const std::uint64_t id : {7, 8}) {
      for (const auto code : {code_of(peer.read(id, 0, 1)), code_of(peer.attach(id))}) CHECK(code == Code::kCorrupt);
      CHECK_THAT(peer.read(id, 0, 1).error().text,
                 Catch::Contains("file " + std::to_string(id)) && Catch::Contains("rows"));
    }
    CHECK(peer.read(9, 11, 1).value() == variable_body({pattern(1, 11)}));
    CHECK(scratch(node).empty());
  });
}

TEST_CASE("whichever call fails while a dense copy is made, that is said, and the next reader gets one") {
  const auto rows = some_rows(200);
  const auto planting = [&](Node& node) { plant(node, older_file(7, Format::variable(), 1), rows); };
  with_planted(planting, [&](Peer& peer, Node& node) {
    for (std::uint64_t call = 0;; ++call) {
      node.restart();
      REQUIRE_OK(peer.read(1, 0, 1));
      std::uint64_t calls = 0;
      bool has_failed = false;
      node.disk->set_fault([&](std::string_view, std::string_view path) {
        const bool is_of_copy =
            path.find("/scratch") != std::string_view::npos || path.find("/07/") != std::string_view::npos;
        const bool fails = is_of_copy && calls++ == call;
        has_failed = has_failed || fails;
        return fails ? Code::kIo : Code::kOk;
      });
      const auto read = peer.read(7, 100, 1);
      node.disk->set_fault({});
      CAPTURE(call);
      CHECK(code_of(read) == (has_failed ? Code::kIo : Code::kOk));
      CHECK(peer.read(7, 105, 1).value() == variable_body({rows[105]}));
      if (!has_failed) {
        CHECK(call > 10);
        return;
      }
    }
  });
}

TEST_CASE("without room for its dense copy an older component is not read, and the room it needs is told") {
  const auto planting = [](Node& node) {
    plant(node, older_file(7, Format::fixed(100'000), 0), some_rows(40, 100'000));
  };
  with_planted(planting, [](Peer& peer, Node& node) {
    node.disk->set_capacity(node.disk->used() + (3u << 20));
    const auto refused = peer.read(7, 0, 1);
    REQUIRE(code_of(refused) == Code::kNoSpace);
    CHECK_THAT(refused.error().text, Catch::Contains("room for a copy of 3.7 MiB") && Catch::Contains("disk is full"));
    CHECK(code_of(peer.attach(7)) == Code::kNoSpace);
    node.disk->set_capacity(node.disk->used() + (8u << 20));
    CHECK(peer.read(7, 3, 1).value() == pattern(100'000, 3));
  });
}

TEST_CASE("while a dense copy is made, who needs it waits and all others are served") {
  HeldExecutor executor;
  const auto rows = some_rows(90, 100);
  const auto planting = [&](Node& node) {
    for (const std::uint64_t id : {7, 8}) plant(node, older_file(id, Format::fixed(100), 0), rows);
    executor.hold(2);
  };
  const auto body = [&](Peer& peer, Node&) {
    REQUIRE_OK(peer.read(1, 0, 5));  // connects again
    std::vector<net::CallId> reads;
    for (const std::uint64_t id : {7, 8, 7}) {
      auto packet = peer.request(id, kMayRead);
      packet.envelope.mutable_read()->set_file(id);
      packet.envelope.mutable_read()->set_first(2);
      packet.envelope.mutable_read()->set_count(1);
      reads.push_back(peer.start(std::move(packet)));
    }
    auto attach = peer.request(7, kMayRead);
    attach.envelope.mutable_attach()->set_file(7);
    reads.push_back(peer.start(std::move(attach)));
    while (executor.held() < 2) peer.self().pause(std::chrono::milliseconds(1));
    CHECK(peer.read(1, 0, 5).value() == pattern(500, 1));
    REQUIRE_OK(peer.settle({}, {8}));  // removed meanwhile
    executor.release();
    CHECK(bytes_of(peer.wait(reads[0]).value().body) == rows[2]);
    CHECK(code_of(peer.wait(reads[1])) == Code::kStaleFile);
    CHECK(bytes_of(peer.wait(reads[2]).value().body) == rows[2]);
    CHECK(peer.wait(reads[3]).value().envelope.attach_reply().state().rows() == 90);
  };
  with_planted(planting, body, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("dense copies that are not used go, and are made again") {
  const auto rows = some_rows(5, 100);
  constexpr std::uint64_t kMany = 530;  // more than have open files
  const auto planting = [&](Node& node) {
    for (std::uint64_t id = 1000; id < 1000 + kMany; ++id) plant(node, older_file(id, Format::fixed(100), 0), rows);
  };
  with_planted(planting, [&](Peer& peer, Node&) {
    for (unsigned round = 0; round < 2; ++round)
      for (std::uint64_t id = 1000; id < 1000 + kMany; ++id) CHECK(peer.read(id, 0, 5).value() == joined(rows));
  });
}

TEST_CASE("overwrites of an older component that an earlier release left in the log are replayed") {
  const auto file = older_file(7, Format::fixed(100), 1);
  auto rows = some_rows(200, 100);
  const auto planting = [&](Node& node) {
    const auto state = plant(node, file, rows);
    const auto storage = component::make_memory_storage(node.disk);
    OlderLog log(*storage, older_log_path(node.root()));
    log.head(1, 0);
    // Stored rows 40 to 79 are chunk 1; stored row 41 is row 27.
    const auto stored = stored_rows(file);
    REQUIRE(stored.stored(27) == 41);
    std::string chunk;
    for (Row row = 40; row < 80; ++row)
      chunk += stored.is_empty(row) ? std::string(100, '\0') : rows[stored.count(row)];
    rows[27] = pattern(100, 999);
    chunk.replace(100, 100, rows[27]);
    log.entry({FileId(7), 1, file.shape().chunk_bytes(), std::as_bytes(std::span(chunk))}, 1000);
  };
  with_planted(planting, [&](Peer& peer, Node& node) {
    CHECK(peer.read(7, 0, 200).value() == joined(rows));
    CHECK(node.check().value().damages.empty());
  });
}
