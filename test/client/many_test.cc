// Many small files at once: created, committed, opened, read and closed together.
#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

std::string name(std::size_t i) { return "/d/" + std::to_string(i); }

// As many files of i * 37 bytes.
std::vector<Client::NewFile> new_files(std::size_t count, const Format& format) {
  std::vector<Client::NewFile> files;
  for (std::size_t i = 0; i < count; ++i) {
    Client::NewFile& file = files.emplace_back();
    file.path = name(i);
    file.options.format = format;
    file.options.is_small = true;
    file.options.modified_ns = static_cast<std::int64_t>(i) * 1'000'000'001 - 5;
  }
  return files;
}

Bytes bytes_of_file(std::size_t i) { return pattern(i * 37, i); }

std::vector<File*> pointers(std::vector<Result<File>>& files) {
  std::vector<File*> out;
  for (auto& file : files) out.push_back(&must_ref(file));
  return out;
}

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(name(i));
  return out;
}

void put_many(Client& client, std::size_t count, const Format& format) {
  must(client.make_folder("/d"));
  auto files = client.create_many(new_files(count, format));
  REQUIRE(files.size() == count);
  for (std::size_t i = 0; i < count; ++i)
    if (i > 0) must(must_ref(files[i]).write(bytes_of_file(i)));
  for (const Status& status : client.commit_many(pointers(files))) must(status);
}

}  // namespace

TEST_CASE("many small files are committed together, with their times, and read together") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      constexpr std::size_t kCount = 700;  // more than an LFS gives credit for
      put_many(client, kCount, Format::fixed(100));
      CHECK(must(client.stat(name(7))).modified_ns == std::int64_t{7} * 1'000'000'001 - 5);
      CHECK(must(client.stat(name(0))).modified_ns == -5);
      auto files = client.open_small_many(names(kCount));
      const auto contents = client.read_many(pointers(files));
      for (std::size_t i = 0; i < kCount; ++i) REQUIRE(must(contents[i]) == bytes_of_file(i));
      must(client.close_many(pointers(files)));
      CHECK(code_of(must_ref(files[1]).file_length()) == Code::kInvalid);
    });
  }
}

TEST_CASE("files that turn out larger than small ones are committed together, too") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d"));
    const auto bytes_of = [](std::size_t i) { return pattern(i * 90'000, i); };
    auto files = client.create_many(new_files(30, Format::fixed(65'536)));
    for (std::size_t i = 1; i < files.size(); ++i) must(must_ref(files[i]).write(bytes_of(i)));
    for (const Status& status : client.commit_many(pointers(files))) must(status);
    for (std::size_t i = 1; i < files.size(); ++i) {
      File file = must(client.open(name(i), Client::Mode::kRead));
      Bytes bytes(i * 90'000);
      CHECK(must(file.pread(bytes, 0)) == bytes.size());
      CHECK(bytes == bytes_of(i));
    }
  });
}

TEST_CASE("of many files each fails by itself") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d"));
    auto wanted = new_files(4, Format::fixed(100));
    wanted[1].path = "/missing/folder";
    wanted[2].path = "not absolute \xff";
    auto files = client.create_many(wanted);
    CHECK(code_of(files[1]) == Code::kNotFound);
    CHECK(code_of(files[2]) == Code::kInvalid);
    must(must_ref(files[0]).write(pattern(50)));
    must(must_ref(files[3]).write(pattern(50)));
    must(must_ref(files[3]).abort());
    std::vector<File*> both = {&must_ref(files[0]), &must_ref(files[3])};
    const auto outcome = client.commit_many(both);
    CHECK(outcome[0]);
    CHECK(outcome[1].error().code == Code::kInvalid);
    auto opened = client.open_small_many(std::vector<std::string>{name(0), name(3)});
    CHECK(code_of(opened[1]) == Code::kNotFound);
    std::vector<File*> one = {&must_ref(opened[0])};
    CHECK(must(client.read_many(one)[0]) == pattern(50));
  });
}

TEST_CASE("of many paths one that cannot be sent fails alone") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    const std::vector<std::string> paths = {"/a", "/\xff", "/b", "/" + std::string(200'000, 'n'), "/c"};
    const auto made = must(client.create_empty_many(paths));
    const auto found = must(client.stat_many(paths));
    const auto removed = must(client.remove_many(paths));
    REQUIRE(made.size() == paths.size());
    for (const std::size_t good : {0u, 2u, 4u}) {
      CHECK(made[good]);
      CHECK(must(found[good]).name == paths[good].substr(1));
      CHECK(removed[good]);
    }
    CHECK(code_of(made[1]) == Code::kInvalid);
    CHECK(code_of(found[1]) == Code::kInvalid);
    CHECK(code_of(removed[1]) == Code::kInvalid);
    CHECK(code_of(made[3]) == Code::kTooLarge);
    CHECK(code_of(found[3]) == Code::kTooLarge);
    CHECK(code_of(client.stat("/\xff")) == Code::kInvalid);
  });
}

TEST_CASE("a small file that was appended to, or has lines, is read as it is now") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    put_many(client, 3, Format::fixed(37));
    auto files = client.open_small_many(names(3));
    File writer = must(client.open(name(2), Client::Mode::kWrite));
    must(writer.append(pattern(37, 9)));
    const auto contents = client.read_many(pointers(files));
    Bytes longer = bytes_of_file(2);
    const Bytes more = pattern(37, 9);
    longer.insert(longer.end(), more.begin(), more.end());
    CHECK(must(contents[1]) == bytes_of_file(1));
    CHECK(must(contents[2]) == longer);
    CreateOptions as_lines;
    as_lines.format = Format::lines();
    File file = must(client.create("/lines", as_lines));
    must(file.write_batch(std::vector<std::uint32_t>{4, 4, 1, 4}, bytes_of("one\ntwo\n\nfour")));
    must(file.commit());
    auto lines = client.open_small_many(std::vector<std::string>{"/lines"});
    CHECK(must(client.read_many(pointers(lines))[0]) == bytes_of("one\ntwo\n\nfour"));
  });
}

TEST_CASE("many folders are made at once, and each fails by itself") {
  FileSystem fs(1);
  fs.run(DataPath::kAuto, [](Client& client) {
    const std::vector<Client::NewFolder> wanted = {{"/a", 0700}, {"/b/c", 0755}, {"/d", 0755}};
    const auto outcome = client.make_folder_many(wanted);
    CHECK(outcome[0]);
    CHECK(outcome[1].error().code == Code::kNotFound);
    CHECK(outcome[2]);
    CHECK(must(client.stat("/a")).mode == 0700);
    CHECK(client.make_folder_many(wanted)[0].error().code == Code::kExists);
  });
}
