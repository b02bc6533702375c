// Requests for many pieces, against a loop over bytes.
#include <cstdlib>
#include <numeric>

#include "fixture.h"
#include "pif/pattern/builders.h"
#include "pif/pattern/zip.h"

using namespace pif;
using namespace pif::test;
using patterns::Pattern;

namespace {

// A request as a loop over bytes: the places of its bytes in the file and in memory, in order.
struct Places {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // file, memory
  std::uint64_t memory_bytes = 0;
};

Places places_of(const File::Pieces& wanted) {
  const auto file = must(patterns::Compiled::make(wanted.file));
  const auto memory = must(patterns::Compiled::make(wanted.memory));
  const std::uint64_t bytes = wanted.bytes.value_or(memory.bytes());
  patterns::Zip zip(must(patterns::Walker::make(file, wanted.displacement, wanted.skip, bytes)),
                    must(patterns::Walker::make(memory, 0, 0, bytes)));
  Places out;
  while (const auto pair = zip.next(1))
    out.places.emplace_back(static_cast<std::uint64_t>(pair->file_offset),
                            static_cast<std::uint64_t>(pair->memory_offset));
  out.memory_bytes = static_cast<std::uint64_t>(must(memory.bounds(0, 0, bytes)).highest);
  return out;
}

// Levels inside one another, somewhere in the first `end` bytes.
Pattern any_pattern(std::mt19937_64& random, std::int64_t end, bool may_overlap) {
  Pattern pattern;
  std::int64_t at = static_cast<std::int64_t>(random() % 50);
  const int levels = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < levels && at < end; ++i) {
    patterns::Level level;
    const auto bytes = static_cast<std::int64_t>(1 + random() % 150);
    level.bytes = static_cast<std::uint64_t>(bytes);
    level.count = 1 + random() % 40;
    level.stride = bytes + static_cast<std::int64_t>(random() % 300);
    if (may_overlap && random() % 3 == 0) level.stride = static_cast<std::int64_t>(random() % 20);
    level.offset = at;
    if (random() % 4 == 0) {  // from behind
      level.offset = at + static_cast<std::int64_t>(level.count - 1) * level.stride;
      level.stride = -level.stride;
    }
    at += static_cast<std::int64_t>(level.count) * std::abs(level.stride) + bytes;
    if (random() % 3 == 0) {
      patterns::Level outer;
      outer.count = 1 + random() % 3;
      outer.stride = at;
      outer.inner = {level};
      at += static_cast<std::int64_t>(outer.count) * at;
      pattern.levels.push_back(outer);
    } else {
      pattern.levels.push_back(level);
    }
  }
  return pattern;
}

File::Pieces any_pieces(std::mt19937_64& random, bool may_overlap) {
  File::Pieces wanted;
  wanted.file = any_pattern(random, 40'000, may_overlap);
  wanted.memory = random() % 2 == 0 ? patterns::range(0, must(patterns::Compiled::make(wanted.file)).bytes())
                                    : any_pattern(random, 20'000, false);
  wanted.displacement = static_cast<std::int64_t>(random() % 1000);
  wanted.skip = random() % 3 == 0 ? random() % 500 : 0;
  if (random() % 3 == 0) wanted.bytes = 1 + random() % 2000;
  return wanted;
}

CreateOptions any_options(std::mt19937_64& random, bool may_have_bevies) {
  CreateOptions options;
  const std::uint32_t lengths[] = {1, 7, 64, 100, 1000, 5000};
  options.format = Format::fixed(lengths[random() % 6]);
  options.width = static_cast<std::uint32_t>(1 + random() % 9);
  if (may_have_bevies && random() % 2 == 0) {
    options.width = 8;
    options.bevy = random() % 2 == 0 ? 2 : 4;
  }
  return options;
}

// PIF_PIECE_ROUNDS: so many times as many pairs of patterns as usual.
int rounds(int usual) {
  const char* const times = std::getenv("PIF_PIECE_ROUNDS");
  return usual * (times == nullptr ? 1 : std::max(1, std::atoi(times)));
}

// At once, or started and waited for.
std::uint64_t read_either_way(File& file, const File::Pieces& wanted, std::span<std::byte> out, bool at_once) {
  return at_once ? must(file.read_pieces(wanted, out)) : must(file.wait(must(file.start_read_pieces(wanted, out))));
}
void write_either_way(File& file, const File::Pieces& wanted, std::span<const std::byte> in, bool at_once) {
  if (at_once)
    must(file.write_pieces(wanted, in));
  else
    must(file.wait(must(file.start_write_pieces(wanted, in))));
}

}  // namespace

TEST_CASE("pieces of a committed file are read as a loop over bytes would, on either path") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(9);
    fs.run(path, [](Client& client) {
      std::mt19937_64 random(7);
      for (int layout = 0; layout < rounds(12); ++layout) {
        const Bytes all = test::pattern(60'011, random());
        put(client, "/f", any_options(random, true), all);
        File file = must(client.open("/f"));
        for (int i = 0; i < 25; ++i) {
          const File::Pieces wanted = any_pieces(random, true);
          const Places places = places_of(wanted);
          Bytes memory(places.memory_bytes, std::byte{0xee}), expected = memory;
          std::uint64_t done = 0;
          bool is_short = false;
          for (const auto& [from, to] : places.places) {
            if (is_short || from >= all.size()) {
              is_short = true;
              continue;
            }
            expected[to] = all[from];
            ++done;
          }
          const std::uint64_t got = read_either_way(file, wanted, memory, random() % 2 == 0);
          REQUIRE(got == done);
          REQUIRE(memory == expected);
        }
      }
    });
  }
}

TEST_CASE("a file being created in pieces is what a loop over bytes would make of them, while it is and afterwards") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(9);
    fs.run(path, [](Client& client) {
      std::mt19937_64 random(11);
      for (int layout = 0; layout < rounds(25); ++layout) {
        const CreateOptions options = any_options(random, true);
        File file = must(client.create("/f", options));
        Bytes model;
        if (random() % 2 == 0) {  // what was written in order before stays
          model = test::pattern(random() % 20'000, random());
          must(file.write(model));
        }
        for (int i = 0; i < 8; ++i) {
          File::Pieces wanted = any_pieces(random, true);
          const Places places = places_of(wanted);
          const Bytes memory = test::pattern(places.memory_bytes, random());
          write_either_way(file, wanted, memory, random() % 2 == 0);
          for (const auto& [to, from] : places.places) {
            if (to >= model.size()) model.resize(to + 1);
            model[to] = memory[from];
          }
          const std::size_t offset = random() % model.size();
          Bytes some(std::min<std::size_t>(random() % 9000, model.size() - offset));
          REQUIRE(must(file.pread(some, offset)) == some.size());
          REQUIRE(std::equal(some.begin(), some.end(), model.begin() + static_cast<std::ptrdiff_t>(offset)));
        }
        must(file.commit());
        REQUIRE(get(client, "/f") == model);
      }
    });
  }
}

TEST_CASE("pieces of a committed file are overwritten as a loop over bytes would, and make it longer") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(9);
    fs.run(path, [](Client& client) {
      std::mt19937_64 random(13);
      unsigned past_the_end = 0;
      for (int layout = 0; layout < 12; ++layout) {
        Bytes model = test::pattern(60'011, random());
        put(client, "/f", any_options(random, false), model);
        File file = must(client.open("/f", Client::Mode::kWrite));
        for (int i = 0; i < 20; ++i) {
          const File::Pieces wanted = any_pieces(random, true);
          const Places places = places_of(wanted);
          const Bytes memory = test::pattern(places.memory_bytes, random());
          std::size_t end = model.size();
          for (const auto& place : places.places) end = std::max<std::size_t>(end, place.first + 1);
          if (end > model.size()) ++past_the_end;
          model.resize(end);
          must(file.write_pieces(wanted, memory));
          for (const auto& [to, from] : places.places) model[to] = memory[from];
          REQUIRE(get(client, "/f") == model);
        }
      }
      CHECK(past_the_end > 0);
      CHECK(past_the_end < 200);
    });
  }
}

// Each has its bytes of every record, and so each finds the file too short, or just made longer.
TEST_CASE("several clients make a committed file longer by pieces at the same time, and no byte is lost") {
  constexpr std::uint64_t kClients = 3, kRecords = 400;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    FileSystem fs(3, seed);
    bool is_there = false;
    for (std::uint64_t number = 0; number < kClients; ++number)
      fs.add_client("c" + std::to_string(number), DataPath::kDescriptors,
                    [&, number](Client& client, sim::Actor& self) {
                      if (number == 0) {
                        put(client, "/f", CreateOptions{.format = Format::fixed(50)}, test::pattern(10));
                        is_there = true;
                      }
                      while (!is_there) self.pause(std::chrono::milliseconds(1));
                      File file = must(client.open("/f", Client::Mode::kWrite));
                      for (std::uint64_t first = 0; first < kRecords; first += 100) {
                        File::Pieces wanted;
                        wanted.compiled_file = must(patterns::CompiledPattern::make(
                            must(patterns::member_of(number, kClients, 10, 1 + first * kClients))));
                        wanted.compiled_memory = must(patterns::CompiledPattern::make(patterns::range(0, 1000)));
                        must(file.write_pieces(wanted, Bytes(1000, std::byte(number + 1))));
                      }
                    });
    fs.world.run();
    Bytes expected = test::pattern(10);
    for (std::uint64_t i = 0; i < kClients * kRecords; ++i)
      expected.insert(expected.end(), 10, std::byte(i % kClients + 1));
    fs.run(DataPath::kAuto, [&](Client& client) { CHECK(get(client, "/f") == expected); });
  }
}

TEST_CASE("a compiled pattern stands for the one it was made of, also when its maker has let go of it") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    std::mt19937_64 random(17);
    const Bytes bytes = test::pattern(60'011);
    put(client, "/f", CreateOptions{.format = Format::fixed(100)}, bytes);
    File file = must(client.open("/f"));
    for (int i = 0; i < 20; ++i) {
      File::Pieces wanted = any_pieces(random, false);
      const Places places = places_of(wanted);
      Bytes expected(places.memory_bytes), out(places.memory_bytes);
      const std::uint64_t count = must(file.read_pieces(wanted, expected));
      File::Operation operation = 0;
      {
        File::Pieces compiled = wanted;
        compiled.compiled_file = must(patterns::CompiledPattern::make(std::exchange(compiled.file, {})));
        compiled.compiled_memory = must(patterns::CompiledPattern::make(std::exchange(compiled.memory, {})));
        operation = must(file.start_read_pieces(compiled, out));
      }
      CHECK(must(file.wait(operation)) == count);
      CHECK(out == expected);
    }
  });
}

TEST_CASE("of bytes that many pieces of one request overwrite the last ones stay, however many messages there are") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(64);
    Bytes model = test::pattern(300'000);
    put(client, "/f", options, model);
    File file = must(client.open("/f", Client::Mode::kWrite));
    // Each piece goes over half of the one before; then all once more from behind; then the same bytes again and again.
    Pattern falling = patterns::simple_strided(0, 4, 4, 70'000);
    falling.levels[0].offset = 4 * 69'999;
    falling.levels[0].stride = -4;
    for (const Pattern& of_file :
         {patterns::simple_strided(7, 4, 2, 140'000), falling, patterns::simple_strided(100, 3, 0, 100'000)}) {
      const std::uint64_t bytes = must(patterns::Compiled::make(of_file)).bytes();
      const File::Pieces wanted{of_file, patterns::range(0, bytes), 0, 0, {}};
      const Bytes memory = test::pattern(bytes, bytes);
      must(file.write_pieces(wanted, memory));
      for (const auto& [to, from] : places_of(wanted).places) model[to] = memory[from];
      REQUIRE(get(client, "/f") == model);
    }
  });
}

TEST_CASE("many pieces of a committed file are overwritten by few messages, and counted") {
  FileSystem fs(4);
  fs.run(DataPath::kDescriptors, [](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(64);
    Bytes model = test::pattern(8 << 20);
    put(client, "/f", options, model);
    File file = must(client.open("/f", Client::Mode::kWrite));
    const auto count = [&] {
      std::uint64_t requests = 0;
      for (const auto& one : client.stats()) requests += one.count;
      return requests;
    };
    const std::uint64_t before = count();
    const Bytes memory = test::pattern(2 << 20, 5);
    const File::Pieces wanted{patterns::simple_strided(3, 64, 256, 1 << 15), patterns::range(0, 2 << 20), 0, 0, {}};
    must(file.write_pieces(wanted, memory));
    CHECK(count() - before < 30);
    CHECK(file.transfers().bytes_by_message == 2 << 20);
    for (const auto& [to, from] : places_of(wanted).places) model[to] = memory[from];
    CHECK(get(client, "/f") == model);
  });
}

TEST_CASE("a message overwrites pieces of so many chunks as one may, also where records are long") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    for (const std::uint32_t length : {64u, 3'000u, 3u << 20}) {
      CreateOptions options;
      options.format = Format::fixed(length);
      Bytes model = test::pattern(19 << 20);
      put(client, "/f", options, model);
      File file = must(client.open("/f", Client::Mode::kWrite));
      const File::Pieces wanted{patterns::simple_strided(4095, 2, 4096, 4800), patterns::range(0, 9600), 0, 0, {}};
      const Bytes memory = test::pattern(9600, length);
      must(file.write_pieces(wanted, memory));
      for (const auto& [to, from] : places_of(wanted).places) model[to] = memory[from];
      REQUIRE(get(client, "/f") == model);
      must(client.remove("/f"));
    }
  });
}

TEST_CASE("pieces of a file with parity are not overwritten: that is refused before anything is sent") {
  FileSystem fs(4);
  fs.run(DataPath::kAuto, [](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(100);
    options.bevy = 2;
    const Bytes model = test::pattern(10'000);
    put(client, "/f", options, model);
    File file = must(client.open("/f", Client::Mode::kWrite));
    const Bytes memory = test::pattern(200, 5);
    const auto pieces =
        file.write_pieces({patterns::simple_strided(50, 10, 333, 20), patterns::range(0, 200), 0, 0, {}}, memory);
    const auto bytes = file.pwrite(memory, 50);
    REQUIRE(code_of(pieces) == Code::kUnsupported);
    CHECK(pieces.error().text == bytes.error().text);
    CHECK(get(client, "/f") == model);
  });
}

TEST_CASE("room that is taken for a file beforehand changes neither its length nor its bytes") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(100);
      for (const std::uint64_t room : {0u, 1u, 250u, 20'000u, 50'000u}) {
        File file = must(client.create("/f", options));
        Bytes model = test::pattern(1050);
        if (room > 1) must(file.write(model));  // in order, before
        must(file.preallocate(room));
        must(file.preallocate(room));
        if (room <= 1) must(file.write(model));
        must(file.pwrite(test::pattern(300, 2), 20'000));
        model.resize(20'300);
        const Bytes tail = test::pattern(300, 2);
        std::copy(tail.begin(), tail.end(), model.begin() + 20'000);
        CHECK(must(file.file_length()).bytes == model.size());
        must(file.commit());
        CHECK(get(client, "/f") == model);
      }
      // LFSs that have room, and get no rows after all, have nothing of the file then.
      for (const std::size_t bytes : {0u, 150u}) {
        File few = must(client.create("/e", options));
        must(few.preallocate(1 << 20));
        const Bytes model = test::pattern(bytes);
        must(few.pwrite(model, 0));
        must(few.commit());
        CHECK(get(client, "/e") == model);
        File grown = must(client.open("/e", Client::Mode::kWrite));
        must(grown.append_bytes(test::pattern(1000)));
        CHECK(get(client, "/e").size() == bytes + 1000);
      }
      CHECK(code_of(must(client.open("/f", Client::Mode::kWrite)).preallocate(1)) == Code::kInvalid);
      options.format = Format::variable();
      CHECK(code_of(must(client.create("/v", options)).preallocate(1)) == Code::kUnsupported);
    });
  }
}

TEST_CASE("room is taken on all LFSs of a file, of each so much as its share is; more than there is is refused") {
  FileSystem fs(4);
  fs.run(DataPath::kMessages, [&](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(1 << 20);
    File file = must(client.create("/f", options));
    must(file.preallocate(10 << 20));
    std::vector<std::uint64_t> room;
    for (unsigned i = 0; i < 4; ++i) {
      std::uint64_t most = 0;
      const auto storage = fs.cluster.open_disk(i);
      for (const std::string& name : fs.cluster.disk(i).files("/"))
        if (name.ends_with(".dat")) most = std::max(most, must(storage->stored_bytes(name)).value_or(0));
      room.push_back(most);
    }
    std::sort(room.begin(), room.end());
    CHECK(room == std::vector<std::uint64_t>{2 << 20, 2 << 20, 3 << 20, 3 << 20});
    for (unsigned i = 0; i < 4; ++i) fs.cluster.disk(i).set_capacity(64u << 20);
    File large = must(client.create("/g", options));
    CHECK(code_of(large.preallocate(std::uint64_t{400} << 20)) == Code::kNoSpace);
  });
}

TEST_CASE("pieces of variable records are read across them") {
  FileSystem fs(3);
  fs.run(DataPath::kDescriptors, [](Client& client) {
    CreateOptions options;
    options.format = Format::variable();
    File made = must(client.create("/v", options));
    const Bytes all = test::pattern(1000);
    must(made.write_batch(std::vector<std::uint32_t>{300, 0, 1, 650, 49}, all));
    must(made.commit());
    File file = must(client.open("/v"));
    const File::Pieces wanted{patterns::simple_strided(5, 7, 100, 10), patterns::range(0, 70), 0, 0, {}};
    Bytes memory(70);
    CHECK(must(file.read_pieces(wanted, memory)) == 70);
    for (const auto& [from, to] : places_of(wanted).places) REQUIRE(memory[to] == all[from]);
  });
}

TEST_CASE("pieces of variable records are read as a loop over bytes would, on either path") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(5);
    fs.run(path, [](Client& client) {
      std::mt19937_64 random(13);
      for (int layout = 0; layout < rounds(3); ++layout) {
        CreateOptions options;
        options.format = Format::variable();
        options.width = static_cast<std::uint32_t>(1 + random() % 5);
        std::vector<std::uint32_t> lengths;
        for (int i = 0; i < 40; ++i) lengths.push_back(static_cast<std::uint32_t>(random() % 300));
        const Bytes all = test::pattern(std::accumulate(lengths.begin(), lengths.end(), 0u), random());
        File made = must(client.create("/v", options));
        must(made.write_batch(lengths, all));
        must(made.commit());
        File file = must(client.open("/v"));
        for (int i = 0; i < 4; ++i) {
          File::Pieces wanted = any_pieces(random, false);
          wanted.bytes = 1 + random() % 300;
          Bytes memory(places_of(wanted).memory_bytes, std::byte{0xee}), expected = memory;
          std::uint64_t done = 0;
          for (const auto& [from, to] : places_of(wanted).places) {
            if (from >= all.size()) break;
            expected[to] = all[from];
            ++done;
          }
          REQUIRE(read_either_way(file, wanted, memory, i % 2 == 0) == done);
          REQUIRE(memory == expected);
        }
      }
    });
  }
}

TEST_CASE("requests that cannot be are refused before anything is sent") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(64);
    put(client, "/f", options, test::pattern(640));
    File file = must(client.open("/f"));
    Bytes memory(64);
    const auto read = [&](Pattern of_file, Pattern of_memory, std::int64_t displacement = 0) {
      return code_of(file.read_pieces({std::move(of_file), std::move(of_memory), displacement, 0, {}}, memory));
    };
    const Pattern whole = patterns::range(0, 64);
    CHECK(read(whole, whole) == Code::kOk);
    CHECK(read(Pattern{}, whole) == Code::kInvalid);
    CHECK(read(whole, patterns::range(1, 64)) == Code::kInvalid);   // past the memory
    CHECK(read(whole, patterns::range(-1, 64)) == Code::kInvalid);  // before it
    CHECK(read(whole, whole, -1) == Code::kInvalid);
    CHECK(read(patterns::simple_strided(0, 8, 1, 0), whole) == Code::kInvalid);
    CHECK(read(patterns::simple_strided(INT64_MAX - 4, 8, 8, 8), whole) == Code::kTooLarge);
    Pattern deep = whole;
    for (int i = 0; i < 40; ++i) {
      patterns::Level level;
      level.inner = deep.levels;
      level.offset = 1;
      deep.levels = {level};
    }
    CHECK(read(deep, whole) == Code::kTooLarge);
    CHECK(read(patterns::range(640, 64), whole) == Code::kOk);  // at the end: nothing
    CHECK(code_of(file.write_pieces({whole, whole, 0, 0, {}}, memory)) == Code::kPermission);
  });
}

TEST_CASE("a million pieces are one request, and its messages are few") {
  FileSystem fs(4);
  fs.run(DataPath::kMessages, [](Client& client) {
    CreateOptions options;
    options.format = Format::fixed(64);
    const Bytes all = test::pattern(8 << 20);
    put(client, "/f", options, all);
    File file = must(client.open("/f"));
    const auto count = [&] {
      std::uint64_t requests = 0;
      for (const auto& one : client.stats()) requests += one.count;
      return requests;
    };
    const std::uint64_t before = count();
    Bytes memory(8 << 18);
    const File::Pieces wanted{patterns::simple_strided(3, 2, 8, 1 << 20), patterns::range(0, 2 << 20), 0, 0, {}};
    CHECK(must(file.read_pieces(wanted, memory)) == 2 << 20);
    CHECK(count() - before < 200);
    for (std::size_t i = 0; i < (2 << 20); ++i) {
      if (memory[i] != all[3 + i / 2 * 8 + i % 2]) FAIL(i);
    }
  });
}
