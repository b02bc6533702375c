// What a folder says of its files, as a client sees it.
#include "fixture.h"
#include "pif/base/inheriting.h"

using namespace pif;
using namespace pif::test;

namespace {

Striping said() {
  Striping striping;
  striping.format = Format::lines();
  striping.nodes = {3, 1, 4, 2};
  striping.bevy = 2;
  return striping;
}

Striping only_width(std::uint32_t width) {
  Striping striping;
  striping.width = width;
  return striping;
}

bool same(const Striping& a, const Striping& b) {
  return a.format == b.format && a.width == b.width && a.nodes == b.nodes && a.bevy == b.bevy;
}

// What a file made with these options gets.
Entry made(Client& client, const std::string& path, const CreateOptions& options) {
  must(client.create_empty(path, options));
  return must(client.stat(path));
}

}  // namespace

TEST_CASE("stat and list give what a folder says of its files") {
  FileSystem fs(4);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d", false, 0755, said()));
    must(client.make_folder("/plain"));
    CHECK(same(must(client.stat("/d")).striping, said()));
    CHECK(same(must(client.list("/")).entries.front().striping, said()));
    CHECK(must(client.stat("/plain")).striping.is_empty());
    AttributeChange change;
    change.striping = only_width(3);
    must(client.change_attributes("/d", change));
    CHECK(same(must(client.stat("/d")).striping, only_width(3)));
    change.striping = Striping{};
    must(client.change_attributes("/d", change));
    CHECK(must(client.stat("/d")).striping.is_empty());
  });
}

TEST_CASE("a file that is created knows the format and layout that its folder gave it, and is written in them") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      must(client.make_folder("/d", false, 0755, said()));
      CreateOptions options;
      options.inherits_format = true;
      const Client::NewFile wanted[] = {{"/d/many", options}};
      auto many = client.create_many(wanted);
      File one = must(client.create("/d/one", options));
      for (File* file : {&one, &must_ref(many.front())}) {
        CHECK(file->format() == Format::lines());
        CHECK(std::vector(file->nodes().begin(), file->nodes().end()) == std::vector<std::uint32_t>{3, 1, 4, 2});
        CHECK(file->layout().has_parity());
        must(file->write_batch(std::vector<std::uint32_t>{4, 4}, bytes_of("one\ntwo\n")));
        must(file->commit());
      }
      for (const char* name : {"/d/one", "/d/many"}) {
        CHECK(must(client.stat(name)).file_length == FileLength{2, 8});
        CHECK(must(client.stat(name)).format == Format::lines());
        CHECK(get(client, name) == bytes_of("one\ntwo\n"));
      }
    });
  }
}

TEST_CASE("what a creator sets wins over its folder; the format is his unless he leaves it, and all is if he says so") {
  FileSystem fs(4);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d", false, 0755, said()));
    CreateOptions options;
    options.format = Format::fixed(10);
    CHECK(made(client, "/d/a", options).format == Format::fixed(10));
    CHECK(must(client.stat("/d/a")).bevies == std::vector<std::uint32_t>{2, 2});
    options.bevy = kNoBevies;
    CHECK(made(client, "/d/b", options).nodes.size() == 4);
    CHECK(must(client.stat("/d/b")).bevies.empty());
    options.width = 3;
    CHECK(made(client, "/d/c", options).nodes.size() == 3);
    options.width = 0;
    options.nodes = {2};
    CHECK(made(client, "/d/d", options).nodes == std::vector<std::uint32_t>{2});
    options.nodes = {3, 1, 4};
    options.bevy = 0;
    CHECK(code_of(client.create_empty("/d/e", options)) == Code::kInvalid);  // with the folder's bevies
    must(client.make_folder("/two", false, 0755, only_width(2)));
    CreateOptions sizes, apart;
    sizes.bevies = {2, 2};
    CHECK(made(client, "/two/a", sizes).nodes.size() == 4);
    apart.inherits_layout = false;
    CHECK(made(client, "/two/b", apart).nodes.size() == 4);
    must(must(client.create_empty_many(std::vector<std::string>{"/two/c"})).front());
    CHECK(must(client.stat("/two/c")).nodes.size() == 2);
  });
}

TEST_CASE("folders that are made together have what the folder above says") {
  FileSystem fs(4);
  fs.run(DataPath::kAuto, [](Client& client) {
    must(client.make_folder("/d", false, 0755, only_width(2)));
    const Client::NewFolder wanted[] = {{"/d/a"}, {"/d/b"}};
    for (const Status& one : client.make_folder_many(wanted)) must(one);
    must(client.make_folder("/d/c/d", true));
    for (const char* path : {"/d/a", "/d/b", "/d/c", "/d/c/d"}) CHECK(must(client.stat(path)).striping.width == 2);
  });
}
