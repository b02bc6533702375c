// What programs see of a file through a mount, and what others see, against bytes in memory.
#include "../../bind/mount/content/content.h"

#include <map>
#include <optional>
#include <random>

#include "../client/fixture.h"
#include "pif/base/inheriting.h"

using namespace pif;
using namespace pif::test;
using mount::Content;
using mount::Unsent;
using mount::UnsentBytes;
using std::chrono_literals::operator""s;

namespace {

constexpr std::uint64_t kRewriteMax = 64u << 20;

// A new file that the file system is not told of yet. known: its inode, when it is.
Content unsent(Client& client, const std::string& path, UnsentBytes& all, CreateOptions options = {},
               std::uint64_t* known = nullptr) {
  Entry entry;
  entry.name = path.substr(1);
  entry.inode = 2;
  auto made = std::make_unique<Unsent>(Client::NewFile{path, std::move(options)}, all, [known](std::uint64_t inode) {
    if (known) *known = inode;
  });
  return {client, std::move(entry), std::move(made), kRewriteMax};
}

// One file of a mount, opened and closed at will, and what it should be.
class Twin {
 public:
  Twin(Client& here, Client& there, std::string path, std::uint32_t bevy, UnsentBytes* lazy = nullptr)
      : here_(here), there_(there), path_(std::move(path)) {
    CreateOptions options;
    options.bevy = bevy;
    options.exclusive = true;
    if (lazy) {
      content_.emplace(unsent(here_, path_, *lazy, options));
      inode_ = 0;  // known later
      return;
    }
    content_.emplace(here_, must(here_.create_now(path_, options)), kRewriteMax);
    inode_ = content_->entry().inode;
  }

  void open() {
    if (content_) return;
    File file = must(here_.open(path_));
    check_inode(file);
    Entry entry = file.entry();
    content_.emplace(here_, std::move(entry), std::move(file), kRewriteMax);
  }
  void close() {
    must(content_->flush());
    content_->close_unsent();
    Content* const waiting[] = {&*content_};
    Content::send_many(here_, waiting);
    must(content_->finish());
    content_.reset();
    committed_ = bytes_;
    check_there();
  }
  void write(std::uint64_t offset, const Bytes& in) {
    must(content_->write(in, offset, time_));
    if (bytes_.size() < offset + in.size()) bytes_.resize(offset + in.size());
    std::copy(in.begin(), in.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void append(const Bytes& in) {
    must(content_->append(in, time_));
    bytes_.insert(bytes_.end(), in.begin(), in.end());
  }
  void truncate(std::uint64_t size) {
    must(content_->truncate(size));
    bytes_.resize(size);
  }
  void commit() {
    must(content_->commit());
    committed_ = bytes_;
    check_there();
  }
  void read(std::uint64_t offset, std::size_t size) {
    Bytes out(size, std::byte{0xee});
    const std::size_t wanted = offset >= bytes_.size() ? 0 : std::min<std::size_t>(size, bytes_.size() - offset);
    REQUIRE(must(content_->read(out, offset)) == wanted);
    const Bytes right(part(bytes_, offset, wanted).begin(), part(bytes_, offset, wanted).end());
    REQUIRE(Bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(wanted)) == right);
    CHECK(content_->size() == bytes_.size());
  }
  void any_step(std::mt19937_64& random) {
    open();
    time_ += 1s;
    const std::uint64_t offset = random() % (bytes_.size() + 70'000);
    const Bytes in = pattern(random() % 3 == 0 ? random() % 200'000 : random() % 5000, random());
    switch (random() % 8) {
      case 0: return close();
      case 1: return commit();
      case 2: return truncate(random() % 3 == 0 ? 0 : random() % (bytes_.size() + 5000));
      case 3: return append(in);
      case 4:
      case 5: return write(offset, in);
      default: return read(offset, 1 + random() % 100'000);
    }
  }
  Content& content() { return *content_; }
  std::size_t size() const { return bytes_.size(); }
  // What others see is what was committed last, or a change of that in place, never anything else.
  void check_there() {
    File file = must(there_.open(path_));
    check_inode(file);
    REQUIRE(get(file) == committed_);
  }

 private:
  void check_inode(const File& file) {
    if (inode_ == 0) inode_ = file.entry().inode;
    CHECK(file.entry().inode == inode_);
  }

  Client& here_;
  Client& there_;
  const std::string path_;
  std::optional<Content> content_;
  std::uint64_t inode_ = 0;
  Bytes bytes_, committed_;
  Time time_{};
};

Content opened(Client& client, File file, std::uint64_t rewrite_max) {
  Entry entry = file.entry();
  return {client, std::move(entry), std::move(file), rewrite_max};
}

// Others are whoever opens the file by its path: a session sees no more of what is not committed than another one.
void with_two(unsigned lfss, const std::function<void(Client&, Client&)>& body) {
  FileSystem fs(lfss);
  fs.run(DataPath::kDescriptors, [&](Client& client) { body(client, client); });
}

}  // namespace

TEST_CASE("programs see through a mount what they wrote, and others what was committed") {
  for (const std::uint32_t bevy : {0u, 2u}) {
    with_two(4, [&](Client& here, Client& there) {
      std::mt19937_64 random(bevy + 1);
      for (int file = 0; file < 6; ++file) {
        Twin twin(here, there, fmt::format("/f{}", file), bevy == 0 ? kNoBevies : bevy);
        for (int step = 0; step < 60; ++step) twin.any_step(random);
        twin.open();
        twin.close();
      }
    });
  }
}

TEST_CASE("a file that is opened, duplicated and closed before it is written is committed once") {
  with_two(3, [](Client& here, Client& there) {
    put(here, "/old", {}, pattern(5000));
    File file = must(here.open("/old"));
    const std::uint64_t before = file.id();
    Content content = opened(here, std::move(file), kRewriteMax);
    must(content.truncate(0));
    must(content.flush());  // dd has closed one of its two
    CHECK(must(there.stat("/old")).id == before);
    must(content.write(pattern(4096), 0, Time{}));
    must(content.flush());
    CHECK(get(there, "/old") == pattern(4096));
    must(content.finish());
  });
}

TEST_CASE("what has no name any more is written and read, and nobody else ever sees it") {
  with_two(3, [](Client& here, Client& there) {
    Content content(here, must(here.create_now("/f", {})), kRewriteMax);
    must(content.write(pattern(10'000), 0, Time{}));
    must(content.hold());
    must(here.remove("/f"));
    content.unlink("");
    must(content.commit());
    Bytes out(10'000);
    CHECK(must(content.read(out, 0)) == 10'000);
    CHECK(out == pattern(10'000));
    must(content.finish());
    CHECK(code_of(there.stat("/f")) == Code::kNotFound);
  });
}

TEST_CASE("a committed file that loses its name while it is open can still be changed") {
  with_two(3, [](Client& here, Client&) {
    put(here, "/f", {}, pattern(10'000));
    File file = must(here.open("/f"));
    Content content = opened(here, std::move(file), kRewriteMax);
    must(content.hold());
    must(here.remove("/f"));
    content.unlink("");
    must(content.write(pattern(10, 2), 5, Time{}));
    must(content.commit());
    Bytes out(10);
    CHECK(must(content.read(out, 5)) == 10);
    CHECK(out == pattern(10, 2));
    must(content.truncate(7));
    CHECK(must(content.read(out, 5)) == 2);
    must(content.finish());
    CHECK(must(here.list("/")).entries.empty());
  });
}

TEST_CASE("an empty file that loses its name while it is open can still be changed") {
  with_two(3, [](Client& here, Client&) {
    must(here.create_empty("/f"));
    File file = must(here.open("/f"));
    Content content = opened(here, std::move(file), kRewriteMax);
    must(content.hold());
    must(here.remove("/f"));
    content.unlink("");
    Bytes out(10);
    CHECK(must(content.read(out, 0)) == 0);
    must(content.append(pattern(10), Time{}));
    must(content.commit());
    CHECK(must(content.read(out, 0)) == 10);
    CHECK(out == pattern(10));
    must(content.finish());
  });
}

TEST_CASE("the new version takes the place of the old one under whatever name that has by then") {
  with_two(3, [](Client& here, Client& there) {
    Content content(here, must(here.create_now("/a", {})), kRewriteMax);
    must(content.write(pattern(100), 0, Time{}));
    must(there.rename("/a", "/b"));
    AttributeChange change;
    change.mode = 0600;
    must(there.change_attributes("/b", change));
    must(content.flush());
    must(content.finish());
    CHECK(get(there, "/b") == pattern(100));
    CHECK(must(there.stat("/b")).mode == 0600);
    CHECK(code_of(there.stat("/a")) == Code::kNotFound);
  });
}

TEST_CASE("of two that rewrite a file the last close wins") {
  with_two(3, [](Client& here, Client& there) {
    put(here, "/f", {}, pattern(100));
    Content first = opened(here, must(here.open("/f")), kRewriteMax);
    Content second = opened(here, must(here.open("/f")), kRewriteMax);
    for (Content* one : {&first, &second}) must(one->truncate(0));
    must(first.write(pattern(10, 2), 0, Time{}));
    must(second.write(pattern(11, 3), 0, Time{}));
    must(second.flush());
    must(first.flush());
    CHECK(get(there, "/f") == pattern(10, 2));
    must(first.finish());
    must(second.finish());
  });
}

TEST_CASE("a larger file than may be copied is not rewritten") {
  with_two(4, [](Client& here, Client&) {
    CreateOptions options;
    options.bevy = 2;
    put(here, "/f", options, pattern(100'000));
    File file = must(here.open("/f"));
    Content content = opened(here, std::move(file), 99'999);
    CHECK(content.write(pattern(10), 0, Time{}).error().code == Code::kUnsupported);
    CHECK(content.truncate(99'999 + 1 - 1).has_value());  // what is kept may be copied
    must(content.finish());
  });
}

TEST_CASE("appends go to the end wherever others have moved it, and the kernel's pages are known to be wrong then") {
  with_two(3, [](Client& here, Client& there) {
    put(here, "/log", {}, pattern(100));
    File file = must(here.open("/log"));
    Content content = opened(here, std::move(file), kRewriteMax);
    must(content.append(pattern(10, 2), Time{}));
    File other = must(there.open("/log", Client::Mode::kWrite));
    must(other.append_bytes(pattern(7, 3)));
    must(content.commit());
    CHECK(content.take_moved());
    CHECK(!content.take_moved());
    const Bytes all = get(there, "/log");
    REQUIRE(all.size() == 117);
    CHECK(Bytes(all.begin() + 107, all.end()) == pattern(10, 2));
    must(content.finish());
  });
}

TEST_CASE("records of variable length are only read") {
  with_two(3, [](Client& here, Client&) {
    CreateOptions options;
    options.format = Format::lines();
    File made = must(here.create("/text", options));
    const std::uint32_t lengths[] = {4, 3};
    must(made.write_batch(lengths, bytes_of("one\nto\n")));
    must(made.commit());
    File file = must(here.open("/text"));
    Content content = opened(here, std::move(file), kRewriteMax);
    Bytes out(100);
    CHECK(must(content.read(out, 0)) == 7);
    CHECK(content.write(bytes_of("x"), 0, Time{}).error().code == Code::kReadOnly);
    CHECK(content.truncate(0).error().code == Code::kReadOnly);
    must(content.finish());
  });
}

TEST_CASE("lazy: programs see what they wrote, whenever a file is sent") {
  for (const std::uint32_t bevy : {0u, 2u}) {
    with_two(4, [&](Client& here, Client& there) {
      std::mt19937_64 random(bevy + 11);
      UnsentBytes all(2u << 20);
      for (int file = 0; file < 12; ++file) {
        Twin twin(here, there, fmt::format("/f{}", file), bevy == 0 ? kNoBevies : bevy, &all);
        for (int step = 0; step < 25; ++step) twin.any_step(random);
        twin.open();
        twin.close();
      }
      CHECK(all.take(2u << 20));  // all room was given back
    });
  }
}

TEST_CASE("lazy: files that were closed are sent together, and one that fails takes no other with it") {
  with_two(3, [](Client& here, Client& there) {
    UnsentBytes all(64u << 20);
    CreateOptions exclusive;
    exclusive.exclusive = true;
    exclusive.mode = 0640;
    put(there, "/f7", {}, pattern(3));
    std::vector<Content> contents;
    std::vector<std::uint64_t> inodes(300);
    contents.reserve(300);
    std::vector<Content*> waiting;
    for (std::size_t i = 0; i < 300; ++i) {
      contents.push_back(unsent(here, fmt::format("/f{}", i), all, exclusive, &inodes[i]));
      must(contents[i].write(pattern(i * 10, i), 0, Time{}));
      must(contents[i].flush());
      contents[i].close_unsent();  // the empty one
      waiting.push_back(&contents[i]);
    }
    CHECK(must(there.list("/")).entries.size() == 1);
    Content::send_many(here, waiting);
    for (std::size_t i = 0; i < 300; ++i) {
      INFO(i);
      if (i == 7) continue;
      CHECK(!contents[i].is_unsent());
      CHECK(inodes[i] == must(there.stat(fmt::format("/f{}", i))).inode);
      REQUIRE(get(there, fmt::format("/f{}", i)) == pattern(i * 10, i));
    }
    CHECK(contents[7].failed().error().code == Code::kExists);
    CHECK(contents[7].finish().error().code == Code::kExists);
    CHECK(get(there, "/f7") == pattern(3));
    CHECK(must(there.stat("/f8")).mode == 0640);
  });
}

TEST_CASE("lazy: a file that is changed after its close is sent first") {
  with_two(3, [](Client& here, Client& there) {
    UnsentBytes all(64u << 20);
    Content content = unsent(here, "/f", all);
    must(content.write(pattern(100), 0, Time{}));
    must(content.flush());
    CHECK(content.state() == Content::State::kWaiting);
    must(content.append(pattern(5, 2), Time{}));
    CHECK(get(there, "/f") == pattern(100));
    must(content.flush());
    CHECK(get(there, "/f").size() == 105);
    must(content.finish());
  });
}

TEST_CASE("lazy: a file that is too large, or finds no room, goes the strict way") {
  with_two(3, [](Client& here, Client& there) {
    UnsentBytes all(2u << 20);
    std::uint64_t known = 0;
    Content large = unsent(here, "/large", all, {}, &known);
    must(large.write(pattern(1u << 20), 0, Time{}));
    CHECK(large.is_unsent());
    must(large.write(pattern(1), 1u << 20, Time{}));
    CHECK(!large.is_unsent());
    CHECK(must(there.stat("/large")).inode == known);
    CHECK(get(there, "/large").empty());  // others see it at its close
    must(large.flush());
    CHECK(get(there, "/large").size() == (1u << 20) + 1);
    must(large.finish());
    REQUIRE(all.take((2u << 20) - 10));
    Content crowded = unsent(here, "/crowded", all);
    must(crowded.write(pattern(11), 0, Time{}));
    CHECK(!crowded.is_unsent());
    must(crowded.flush());
    CHECK(get(there, "/crowded") == pattern(11));
    must(crowded.finish());
  });
}

TEST_CASE("lazy: a file that loses its name is never sent, and can still be read and written") {
  with_two(3, [](Client& here, Client& there) {
    UnsentBytes all(64u << 20);
    Content content = unsent(here, "/f", all);
    must(content.write(pattern(100), 0, Time{}));
    must(content.flush());
    content.unlink("");
    Content* const waiting[] = {&content};
    Content::send_many(here, waiting);
    must(content.write(pattern(10, 2), 100, Time{}));
    must(content.commit());
    CHECK(content.size() == 110);
    must(content.write(pattern(10, 3), 2u << 20, Time{}));  // grows too large
    Bytes out(10);
    CHECK(must(content.read(out, 100)) == 10);
    CHECK(out == pattern(10, 2));
    must(content.finish());
    CHECK(must(there.list("/")).entries.empty());
  });
}

TEST_CASE("lazy: attributes that are set before a file is sent go with it") {
  with_two(3, [](Client& here, Client& there) {
    UnsentBytes all(64u << 20);
    AttributeChange change;
    change.mode = 0604;
    change.modified_ns = 981'173'106'000'000'000;
    for (const bool is_large : {false, true}) {
      const std::string path = is_large ? "/large" : "/small";
      Content content = unsent(here, path, all);
      must(content.write(pattern(100), 0, Time{}));
      content.change_unsent(change);
      CHECK(content.entry().mode == 0604);
      if (is_large) must(content.send_name());
      must(content.commit());
      must(content.finish());
      CHECK(must(there.stat(path)).mode == 0604);
      CHECK(must(there.stat(path)).modified_ns == *change.modified_ns);
    }
  });
}
