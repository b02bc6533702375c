// Forks, and files that are placed: made of nothing but forks.
#include "fixture.h"
#include "pif/base/inheriting.h"
#include "pif/client/bulk.h"

using namespace pif;
using namespace pif::test;

namespace {

CreateOptions placed(std::uint32_t width) {
  CreateOptions options;
  options.format = Format::fixed(8);
  options.width = width;
  options.placed = true;
  return options;
}

CreateOptions records_of(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  return options;
}

void put_fork(Client& client, const File& of, std::uint32_t subfile, const std::string& name,
              std::span<const std::byte> bytes) {
  File fork = must(client.create_fork(of, subfile, name, records_of(8)));
  must(fork.write(bytes));
  must(fork.commit());
}

std::vector<std::string> forks_of(Client& client, const File& file) {
  std::vector<std::string> names;
  for (const Entry& entry : must(client.list_forks(file)).entries) names.push_back(entry.name);
  return names;
}

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A committed placed file; nothing: that subfile has no fork "data".
void put_placed(Client& client, const std::string& path, const std::vector<std::optional<Bytes>>& subfiles) {
  File file = must(client.create(path, placed(static_cast<std::uint32_t>(subfiles.size()))));
  for (std::uint32_t i = 0; i < subfiles.size(); ++i)
    if (subfiles[i]) put_fork(client, file, i, "data", *subfiles[i]);
  must(file.commit());
}

}  // namespace

TEST_CASE("a placed file is seen with all its forks, or not at all; each is on the LFS of its subfile") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      CreateOptions options = placed(0);
      options.nodes = {3, 1, 4};
      File file = must(client.create("/f", options));
      CHECK(file.is_placed());
      put_fork(client, file, 2, "data", pattern(100, 2));
      put_fork(client, file, 0, "data", pattern(1000, 0));
      put_fork(client, file, 0, "index", pattern(10, 7));
      CHECK(code_of(client.stat("/f")) == Code::kNotFound);
      CHECK(code_of(client.open("/f/0/data")) == Code::kNotFound);
      CHECK(get(file) == joined({pattern(1000, 0), pattern(100, 2)}));  // its maker reads it
      must(file.commit());
      const Entry entry = must(client.stat("/f"));
      CHECK(entry.is_placed);
      CHECK(entry.file_length.bytes == 1100);
      CHECK(must(client.list("/")).entries.front().file_length.bytes == 1100);
      CHECK(get(client, "/f") == joined({pattern(1000, 0), pattern(100, 2)}));
      CHECK(must(client.stat("/f/0/index")).nodes == std::vector<std::uint32_t>{3});
      CHECK(must(client.stat("/f/2/data")).nodes == std::vector<std::uint32_t>{4});
      CHECK(get(client, "/f/0/index") == pattern(10, 7));
      CHECK(forks_of(client, must(client.open("/f"))) == std::vector<std::string>{"0/data", "0/index", "2/data"});
    });
  }
}

TEST_CASE("the bytes of a placed file are those of its forks data, one after another, at any place") {
  CHECK(holds([] {
    const auto width = *rc::gen::inRange<std::uint32_t>(1, 5);
    std::vector<std::optional<Bytes>> subfiles(width);
    Bytes all;
    for (auto& part : subfiles) {
      if (*rc::gen::inRange(0, 4) == 0) continue;
      part = pattern(*rc::gen::inRange<std::size_t>(0, 300), all.size() + 1);
      all.insert(all.end(), part->begin(), part->end());
    }
    const auto offset = *rc::gen::inRange<std::size_t>(0, all.size() + 10);
    Bytes out(*rc::gen::inRange<std::size_t>(0, all.size() + 10));
    FileSystem fs(4);
    fs.run(*rc::gen::elementOf(std::vector<DataPath>(std::begin(kBothPaths), std::end(kBothPaths))),
           [&](Client& client) {
             put_placed(client, "/f", subfiles);
             File file = must(client.open("/f"));
             const std::size_t got = must(file.pread(out, offset));
             const auto expected = part(all, offset, out.size());
             RC_ASSERT(got == expected.size());
             RC_ASSERT(std::equal(expected.begin(), expected.end(), out.begin()));
             RC_ASSERT(must(file.file_length()).bytes == all.size());
           });
  }));
}

TEST_CASE("forks grow on their own, and a placed file with them") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    put_placed(client, "/f", {bytes_of("11111111"), bytes_of("22222222")});
    File file = must(client.open("/f"));
    CHECK(text_of(get(file)) == "1111111122222222");
    File fork = must(client.open_fork(file, 0, "data", Client::Mode::kWrite));
    must(fork.append(bytes_of("33333333")));
    CHECK(text_of(get(file)) == "111111113333333322222222");
    must(fork.close());
    CHECK(must(client.stat("/f")).file_length.bytes == 24);
    must(client.open_fork(file, 1, "data", Client::Mode::kWrite)->pwrite(bytes_of("x"), 7));
    CHECK(text_of(get(client, "/f")) == "11111111333333332222222x");
  });
}

TEST_CASE("a placed file of which an LFS does not answer can be read again once it does") {
  FileSystem fs(3);
  fs.add_client("client", DataPath::kMessages, [&fs](Client& client, sim::Actor&) {
    CreateOptions options = placed(0);
    options.nodes = {1, 2, 3};
    File made = must(client.create("/f", options));
    for (std::uint32_t subfile = 0; subfile < 3; ++subfile)
      put_fork(client, made, subfile, "data", pattern(40, subfile));
    must(made.commit());
    File file = must(client.open("/f"));
    const Bytes all = get(file);
    fs.cluster.kill_lfs(1);
    CHECK(!file.file_length());
    Bytes out(1);
    CHECK(!file.pread(out, 90));
    fs.cluster.restart_lfs(1);
    CHECK(get(file) == all);
  });
  fs.world.run();
}

TEST_CASE("any file may have forks beside its records; they are added, replaced and removed at any time") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    put(client, "/f", records_of(10), pattern(95));
    File file = must(client.open("/f"));
    CHECK(forks_of(client, file).empty());
    for (std::uint32_t subfile = 0; subfile < 3; ++subfile) put_fork(client, file, subfile, "sums", pattern(subfile));
    put_fork(client, file, 1, "sums", pattern(50));
    CHECK(get(client, "/f/1/sums") == pattern(50));
    CHECK(forks_of(client, file) == std::vector<std::string>{"0/sums", "1/sums", "2/sums"});
    must(client.remove_fork(file, 1, "sums"));
    CHECK(code_of(client.remove_fork(file, 1, "sums")) == Code::kNotFound);
    must(client.remove("/f/0/sums"));
    CHECK(forks_of(client, file) == std::vector<std::string>{"2/sums"});
    must(client.rename("/f/2/sums", "/f/2/totals"));
    CHECK(get(client, "/f/2/totals") == pattern(2));
    CHECK(get(client, "/f") == pattern(95));
    must(client.create_empty("/f/0/by path", records_of(4)));
    CHECK(must(client.stat("/f/0/by path")).format == Format::fixed(4));
    const ListPage page = must(client.list_forks(file, "0/by path", 1));
    REQUIRE(page.entries.size() == 1);
    CHECK(page.entries.front().name == "2/totals");
    CHECK(!page.more);
  });
}

TEST_CASE("forks move with their file, and go with it: removed, replaced, given up") {
  FileSystem fs(3);
  fs.add_client("client", DataPath::kAuto, [](Client& client, sim::Actor& self) {
    put_placed(client, "/f", {pattern(10), pattern(20)});
    must(client.rename("/f", "/g"));
    CHECK(get(client, "/g/1/data") == pattern(20));
    put_placed(client, "/g", {pattern(30)});
    CHECK(code_of(client.open("/g/1/data")) == Code::kInvalid);  // it has one subfile
    CHECK(get(client, "/g") == pattern(30));
    File open = must(client.open("/g"));
    must(client.remove("/g"));
    CHECK(code_of(client.open_fork(open, 0, "data")) == Code::kStaleFile);
    CHECK(code_of(client.create_fork(open, 0, "more")) == Code::kStaleFile);
    must(open.close());
    File given_up = must(client.create("/h", placed(2)));
    put_fork(client, given_up, 0, "data", pattern(10));
    must(given_up.abort());
    put(client, "/h", records_of(10), pattern(10));
    CHECK(forks_of(client, must(client.open("/h"))).empty());
    for (int i = 0; i < 60 && must(client.status()).doomed > 0; ++i) self.pause(std::chrono::seconds(1));
    const SystemStatus status = must(client.status());
    CHECK(status.files == 1);
    CHECK(status.pending == 0);
    CHECK(status.doomed == 0);
  });
  fs.world.run();
}

TEST_CASE("a fork that is not committed is not forgotten") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    File file = must(client.create("/f", placed(2)));
    File fork = must(client.create_fork(file, 1, "data", records_of(8)));
    must(fork.write(pattern(8)));
    const Status early = file.commit();
    REQUIRE(!early);
    CHECK(early.error().code == Code::kBusy);
    CHECK(early.error().text.find("1/data") != std::string::npos);
    must(fork.commit());
    must(file.commit());
    CHECK(get(client, "/f") == pattern(8));
    // Begun before its file went: there is nothing for it to be in.
    File open = must(client.open("/f"));
    File late = must(client.create_fork(open, 0, "late"));
    must(client.remove("/f"));
    CHECK(code_of(late.commit()) == Code::kNotFound);
  });
}

TEST_CASE("a placed file has no records of its own") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    File file = must(client.create("/f", placed(2)));
    CHECK(code_of(file.write(pattern(8))) == Code::kInvalid);
    CHECK(code_of(file.pwrite(pattern(8), 0)) == Code::kInvalid);
    CHECK(code_of(file.share()) == Code::kInvalid);
    CHECK(code_of(file.preallocate(8)) == Code::kInvalid);
    must(file.commit());
    File open = must(client.open("/f", Client::Mode::kWrite));
    Bytes out(8);
    CHECK(code_of(open.read(out, 1)) == Code::kInvalid);
    CHECK(code_of(open.append(pattern(8))) == Code::kInvalid);
    CHECK(code_of(open.start_read(0, out, 1)) == Code::kInvalid);
    CHECK(must(open.pread(out, 0)) == 0);
    must(open.close());
    CHECK(code_of(open.file_length()) == Code::kInvalid);
  });
}

TEST_CASE("what cannot be a fork is refused, and it is said why") {
  FileSystem fs(4);
  fs.run(DataPath::kAuto, [&fs](Client& client) {
    put(client, "/f", records_of(10), pattern(95));
    File file = must(client.open("/f"));
    CHECK(code_of(client.create_fork(file, 4, "a")) == Code::kInvalid);
    CHECK(code_of(client.create_fork(file, 0, "")) == Code::kInvalid);
    CHECK(code_of(client.create_fork(file, 0, "a/b")) == Code::kInvalid);
    CHECK(code_of(client.create_fork(file, 0, "..")) == Code::kInvalid);
    CHECK(code_of(client.create_fork(file, 0, "\xff")) == Code::kInvalid);
    CHECK(code_of(client.open_fork(file, 0, "none")) == Code::kNotFound);
    CHECK(code_of(client.create("/f/4/a")) == Code::kInvalid);
    CHECK(code_of(client.create("/f/a")) == Code::kNotDirectory);
    CHECK(code_of(client.create("/f/0/a/b")) == Code::kNotDirectory);
    CHECK(code_of(client.make_folder("/f/0/a")) == Code::kInvalid);
    CreateOptions elsewhere, wide, protected_one, in_itself;
    elsewhere.nodes = {2};
    wide.width = 2;
    protected_one.bevy = 2;
    in_itself.placed = true;
    for (const CreateOptions& options : {elsewhere, wide, protected_one, in_itself})
      CHECK(code_of(client.create_fork(file, 0, "a", options)) == Code::kInvalid);
    CreateOptions with_bevies = placed(4);
    with_bevies.bevy = 2;
    CHECK(code_of(client.create("/p", with_bevies)) == Code::kInvalid);
    put_fork(client, file, 0, "a", pattern(8));
    CHECK(code_of(client.create_fork(must(client.open("/f/0/a")), 0, "b")) == Code::kInvalid);
    CHECK(code_of(client.create("/f/0/a/0/b")) == Code::kNotDirectory);
    put(client, "/g", records_of(10), pattern(95));
    for (const char* to : {"/f/1/a", "/g/0/a", "/a"}) CHECK(code_of(client.rename("/f/0/a", to)) == Code::kInvalid);
    CHECK(code_of(client.rename("/g", "/f/0/b")) == Code::kInvalid);
    fs.cluster.kill_lfs(1);
    File one = must(client.open("/f"));
    Bytes out(8);
    auto down = client.create_fork(one, 1, "b");
    const bool refused = !down || !down->write(pattern(8)) || !down->commit();
    CHECK(refused);
  });
}

TEST_CASE("a file system with bevies has placed files, too, without them") {
  sim::Options options;
  FileSystem fs(4, 1, options);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d", false, 0755, Striping{{}, 0, {}, 2}));
    put_placed(client, "/d/f", {pattern(10), pattern(20)});
    CHECK(must(client.stat("/d/f")).bevies.empty());
    CreateOptions kept = records_of(10);
    kept.bevy = 2;
    put(client, "/kept", kept, pattern(95));
    File file = must(client.open("/kept"));
    put_fork(client, file, 3, "a", pattern(8));
    CHECK(must(client.stat("/kept/3/a")).bevies.empty());
  });
}
