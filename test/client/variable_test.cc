// Records of variable length.
#include "fixture.h"

using namespace std::chrono_literals;
using namespace pif;
using namespace pif::test;

namespace {

using Records = std::vector<Bytes>;

struct Packed {
  std::vector<std::uint32_t> lengths;
  Bytes data;
};
Packed pack(std::span<const Bytes> records) {
  Packed out;
  for (const Bytes& record : records) {
    out.lengths.push_back(static_cast<std::uint32_t>(record.size()));
    out.data.insert(out.data.end(), record.begin(), record.end());
  }
  return out;
}
Records any_records(std::size_t count_max) {
  Records out(*rc::gen::inRange<std::size_t>(0, count_max));
  std::uint64_t seed = 1;
  for (Bytes& record : out) {
    const bool long_one = *rc::gen::inRange(0, 50) == 0;
    record = pattern(*rc::gen::inRange<std::size_t>(0, long_one ? 20000 : 60), ++seed);
  }
  return out;
}

CreateOptions any_layout() {
  CreateOptions options;
  options.format = Format::variable();
  options.width = *rc::gen::inRange<std::uint32_t>(1, 6);
  if (*rc::gen::inRange(0, 3) == 0) {
    options.width = 4;
    options.bevy = 2;
  }
  return options;
}

void write_in_batches(File& file, std::span<const Bytes> records) {
  while (!records.empty()) {
    const std::size_t count = std::min(records.size(), *rc::gen::inRange<std::size_t>(1, 50));
    const Packed batch = pack(records.first(count));
    must(file.write_batch(batch.lengths, batch.data));
    records = records.subspan(count);
  }
}

Records read_all(File& file, std::size_t bytes_max) {
  Records out;
  while (true) {
    const RecordBatch batch = must(file.read_batch(*rc::gen::inRange<std::uint64_t>(1, 70), bytes_max));
    if (batch.lengths.empty()) return out;
    std::size_t at = 0;
    for (const std::uint32_t length : batch.lengths) {
      out.emplace_back(batch.data.begin() + static_cast<std::ptrdiff_t>(at),
                       batch.data.begin() + static_cast<std::ptrdiff_t>(at + length));
      at += length;
    }
    RC_ASSERT(at == batch.data.size());
    RC_ASSERT(batch.lengths.size() == 1 || at <= bytes_max);
  }
}

}  // namespace

TEST_CASE("variable records come back as they were written, whatever the widths, bevies and batches") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(5);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const Records records = any_records(200);
        File created = must(client.create("/v", any_layout()));
        write_in_batches(created, records);
        must(created.commit());
        File file = must(client.open("/v"));
        const Packed all = pack(records);
        RC_ASSERT((must(file.file_length()) == FileLength{records.size(), all.data.size()}));
        RC_ASSERT(read_all(file, *rc::gen::element<std::size_t>(1, 100, 5000, 1u << 20)) == records);
        RC_ASSERT(get(file) == all.data);
      }));
    });
  }
}

TEST_CASE("the byte view finds its place in variable records") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(5);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const Records records = any_records(150);
        Packed all = pack(records);
        CreateOptions options = any_layout();
        options.bevy = 0;  // files with parity: protected_test.cc
        File created = must(client.create("/v", options));
        write_in_batches(created, records);
        must(created.commit());
        File file = must(client.open("/v", Client::Mode::kWrite));
        for (int i = 0; i < 6 && !all.data.empty(); ++i) {
          const auto offset = *rc::gen::inRange<std::size_t>(0, all.data.size());
          const auto size = *rc::gen::inRange<std::size_t>(1, all.data.size() - offset + 1);
          if (i % 2 == 1) {
            const Bytes fresh = pattern(size, static_cast<std::uint64_t>(i) + 100);
            RC_ASSERT(must(file.pwrite(fresh, offset)) == size);
            std::copy(fresh.begin(), fresh.end(), all.data.begin() + static_cast<std::ptrdiff_t>(offset));
          }
          Bytes out(size + 10);
          const std::size_t got = must(file.pread(out, offset));
          RC_ASSERT(got == std::min(out.size(), all.data.size() - offset));
          RC_ASSERT(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(got),
                               all.data.begin() + static_cast<std::ptrdiff_t>(offset)));
        }
        must(file.seek(0));
        RC_ASSERT(must(file.read_batch(UINT64_MAX, 1u << 26)).lengths == all.lengths);
      }));
    });
  }
}

TEST_CASE("an overwritten variable record keeps its length") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::variable();
      const Packed old = pack(Records{bytes_of("one"), bytes_of("three"), bytes_of(""), bytes_of("nine")});
      File file = must(client.create("/v", options));
      must(file.write_batch(old.lengths, old.data));
      must(file.commit());
      file = must(client.open("/v", Client::Mode::kWrite));
      const Packed fresh = pack(Records{bytes_of("THREE"), bytes_of(""), bytes_of("NINE")});
      must(file.write_batch_at(1, fresh.lengths, fresh.data));
      CHECK(text_of(get(file)) == "oneTHREENINE");
      CHECK(code_of(file.write_batch_at(0, std::vector<std::uint32_t>{4}, bytes_of("ones"))) == Code::kInvalid);
      CHECK(code_of(file.write_batch_at(9, std::vector<std::uint32_t>{1}, bytes_of("x"))) == Code::kEndOfFile);
      CHECK(code_of(file.write_batch_at(0, std::vector<std::uint32_t>{2}, bytes_of("x"))) == Code::kInvalid);
    });
  }
}

TEST_CASE("lines keep their terminator, and only the last may lack it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::lines();
      File file = must(client.create("/l", options));
      CHECK(code_of(file.write_batch(std::vector<std::uint32_t>{1, 2}, bytes_of("xy\n"))) == Code::kInvalid);
      must(file.write_batch(std::vector<std::uint32_t>{2, 1, 3}, bytes_of("a\n\nxyz")));
      CHECK(code_of(file.write_batch(std::vector<std::uint32_t>{2}, bytes_of("b\n"))) == Code::kInvalid);
      must(file.commit());
      CHECK(text_of(get(client, "/l")) == "a\n\nxyz");
    });
  }
}

TEST_CASE("records of variable length can be read by descriptor while others overwrite and append") {
  FileSystem system(1, 3);
  std::vector<Packed> batches;  // what the four records can be, all of one length
  for (std::uint64_t seed = 0; seed < 7; ++seed) batches.push_back(pack(Records(4, pattern(30, seed))));
  const auto is_one_of_them = [&](const Bytes& data) {
    return std::any_of(batches.begin(), batches.end(), [&](const Packed& batch) { return batch.data == data; });
  };
  system.run(DataPath::kAuto, [&](Client& client) {
    CreateOptions options;
    options.format = Format::variable();
    File file = must(client.create("/file", options));
    must(file.write_batch(batches[0].lengths, batches[0].data));
    must(file.commit());
  });
  unsigned writing = 3;
  for (const char* name : {"first", "second", "third"}) {
    system.add_client(name, DataPath::kMessages, [&](Client& client, sim::Actor&) {
      File file = must(client.open("/file", Client::Mode::kWrite));
      for (std::size_t i = 0; i < 42; ++i) must(file.write_batch_at(0, batches[i % 7].lengths, batches[i % 7].data));
      (void)must(file.append_batch(batches[0].lengths, batches[0].data));
      --writing;
    });
  }
  system.add_client("reader", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    File file = must(client.open("/file"));
    while (writing > 0 && self.pause(100us)) REQUIRE(is_one_of_them(must(file.read_batch_at(0, 4)).data));
  });
  system.world.run();
}
