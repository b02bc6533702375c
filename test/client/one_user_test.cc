// A client belongs to one thread of one process.
#include "../../client/src/session/one_user.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

// What `call` gives in a child, as an exit status: the code of its error. A child made by the bare system call: this is
// about processes that are forked.
template <typename Call>
int code_in_child(Call call) {
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) ::syscall(SYS_exit_group, static_cast<int>(call()));
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(static_cast<pid_t>(child), &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a forked child is refused its parent's client and files, and the parent goes on") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(10);
      put(client, "/f", options, pattern(50));
      File file = must(client.open("/f", Client::Mode::kWrite));
      Bytes out(10);
      REQUIRE(must(file.read_at(1, out, 1)) == 1);
      const int invalid = static_cast<int>(Code::kInvalid);
      CHECK(code_in_child([&] { return code_of(client.stat("/f")); }) == invalid);
      CHECK(code_in_child([&] { return code_of(file.read_at(1, out, 1)); }) == invalid);
      CHECK(code_in_child([&] { return code_of(file.append(pattern(10))); }) == invalid);
      CHECK(code_in_child([&] {
              { const File dropped = std::move(file); }  // says nothing to anybody
              return code_of(client.stat("/f"));
            }) == invalid);
      CHECK(must(file.read_at(1, out, 1)) == 1);
      CHECK(must(client.stat("/f")).file_length.records == 5);
    });
  }
}

#ifdef NDEBUG
TEST_CASE("a second thread is refused while one is inside, and served afterwards") {
  client::OneUser user;
  const auto code_elsewhere = [&] {
    Code code = Code::kOk;
    std::thread([&] { code = code_of(client::Use::begin(user)); }).join();
    return code;
  };
  {
    const auto use = client::Use::begin(user);
    REQUIRE(use);
    {
      const auto inside = client::Use::begin(user);  // a call that makes calls
      REQUIRE(inside);
    }
    CHECK(code_elsewhere() == Code::kInvalid);
  }
  CHECK(code_elsewhere() == Code::kOk);
}

TEST_CASE("a call of a second thread while one waits for an answer is an error, not a wait without end") {
  FileSystem fs(1);
  Code code = Code::kOk;
  fs.add_client("client", DataPath::kMessages, [&](Client& client, sim::Actor&) {
    fs.world.on_step([&](std::uint64_t) {  // between two steps everybody waits
      if (code == Code::kOk) std::thread([&] { code = code_of(client.stat("/")); }).join();
    });
    CHECK(must(client.stat("/")).kind == EntryKind::kFolder);
    fs.world.on_step(nullptr);
  });
  fs.world.run();
  CHECK(code == Code::kInvalid);
}
#endif
