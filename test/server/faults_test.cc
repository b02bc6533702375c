// Each call of the directory's store fails once during each operation: it is done wholly and said to be, or not at all
// and said not to be; and then it works.
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }

struct Operation {
  const char* what;
  std::function<Code(Client&)> run;
  std::function<bool(Client&)> done;  // whether it is; nothing: it changes nothing that can be seen
};

// What operations find: folders /d (with a file and a folder in it) and /empty, files /f and /g, and /p being created.
struct Scene {
  Scene() {
    for (const char* folder : {"/d/in", "/empty"}) REQUIRE(client.mkdir(folder, true));
    for (const char* file : {"/d/f", "/d/in/f", "/f", "/g"}) client.put(file);
    REQUIRE(client.create("/bare", true));
    pending = client.create("/p")->file();
    world.settles({1, 2, 3, 4});
  }
  World world;
  Client client{world};
  std::uint64_t pending = 0;
};

// As after a kill: what was committed, and nothing of what was only in memory.
void restart(Scene& scene) {
  scene.world.start();
  scene.world.heartbeats();
}

void check_failed(Scene& scene, const Operation& operation, Code code) {
  Client again(scene.world);
  const bool done = operation.done && operation.done(again);
  if (code == Code::kOk) {
    CHECK((done || !operation.done));
    return;
  }
  CHECK(code == Code::kIo);
  CHECK_FALSE(done);
  CHECK(operation.run(again) == Code::kOk);
  CHECK((!operation.done || operation.done(again)));
}

// Returns how many calls there were to fail.
std::uint64_t fail_each_call(const Operation& operation, bool restarted) {
  for (std::uint64_t call = 0;; ++call) {
    Scene scene;
    Client fresh(scene.world);  // has nothing open and nothing in memory
    scene.world.faults->fail_at(call, sim::Fault::kIoError, false);
    const Code code = operation.run(fresh);
    const bool failed = scene.world.faults->has_failed();
    INFO(operation.what << ", call " << call << ": " << scene.world.faults->failed_call());
    scene.world.faults->heal();
    if (restarted) restart(scene);
    if (!failed) CHECK(code == Code::kOk);
    check_failed(scene, operation, code);
    require_sound(scene.world);
    if (!failed) return call;
  }
}

Code set_mode(Client& client, const std::string& path) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_mode(0700);
  return code_of(client.ask(request));
}
bool has_mode(Client& client, const std::string& path) { return client.stat(path)->attributes().mode() == 0700; }

Code open_and_close(Client& client, const std::string& path, std::uint32_t rights) {
  const auto opened = client.open(path, rights);
  if (!opened) return opened.error().code;
  Envelope request;
  proto::Close& close = *request.mutable_close();
  close.add_files(opened->entry().id());
  close.set_length_file(opened->entry().id());
  close.mutable_file_length()->set_records(20);
  close.mutable_file_length()->set_bytes(2000);
  return code_of(client.ask(request));
}

Code renew(Client& client, const std::string& path) {
  const auto opened = client.open(path, kMayRead | kMayWrite);
  if (!opened) return opened.error().code;
  Envelope request;
  request.mutable_renew()->add_files(opened->entry().id());
  return code_of(client.ask(request));
}

Code create_and_commit(Client& client, const std::string& path) {
  const auto made = client.create(path);
  if (!made) return made.error().code;
  return code_of(client.ask(Client::commit_request(made->file(), 7)));
}

Code create_and_abort(Client& client, const std::string& path) {
  const auto made = client.create(path);
  if (!made) return made.error().code;
  Envelope request;
  request.mutable_abort()->set_file(made->file());
  return code_of(client.ask(request));
}

// Removing: the request's own error, or that of its one path.
Code remove(Client& client, const std::string& path, bool recursive) {
  const auto reply = client.ask(Client::remove_request({path}, recursive));
  if (!reply) return reply.error().code;
  return static_cast<Code>(reply->remove_reply().errors(0).code());
}

const std::vector<Operation> kOperations = {
    {"make a folder", [](Client& c) { return code_of(c.mkdir("/new")); }, [](Client& c) { return c.exists("/new"); }},
    {"make folders", [](Client& c) { return code_of(c.mkdir("/d/a/b", true)); },
     [](Client& c) { return c.exists("/d/a/b"); }},
    {"create an empty file", [](Client& c) { return code_of(c.ask(Client::create_request("/new", true))); },
     [](Client& c) { return c.exists("/new"); }},
    {"create an empty file over another", [](Client& c) { return code_of(c.ask(Client::create_request("/f", true))); },
     [](Client& c) { return c.stat("/f")->file_length().records() == 0; }},
    {"create and commit over another", [](Client& c) { return create_and_commit(c, "/f"); },
     [](Client& c) { return c.stat("/f")->file_length().records() == 7; }},
    {"create and commit over an empty one", [](Client& c) { return create_and_commit(c, "/bare"); },
     [](Client& c) { return c.stat("/bare")->file_length().records() == 7; }},
    {"create and abort", [](Client& c) { return create_and_abort(c, "/new"); }, {}},
    {"rename a file", [](Client& c) { return code_of(c.rename("/f", "/d/new")); },
     [](Client& c) { return c.exists("/d/new") && !c.exists("/f"); }},
    {"rename a file over another", [](Client& c) { return code_of(c.rename("/f", "/d/f")); },
     [](Client& c) { return !c.exists("/f"); }},
    {"rename a folder over another", [](Client& c) { return code_of(c.rename("/d", "/empty")); },
     [](Client& c) { return c.exists("/empty/in/f") && !c.exists("/d"); }},
    {"remove a file", [](Client& c) { return remove(c, "/f", false); }, [](Client& c) { return !c.exists("/f"); }},
    {"remove a folder", [](Client& c) { return remove(c, "/empty", false); },
     [](Client& c) { return !c.exists("/empty"); }},
    {"remove a tree", [](Client& c) { return remove(c, "/d", true); }, [](Client& c) { return !c.exists("/d"); }},
    {"remove a file as a tree", [](Client& c) { return remove(c, "/f", true); },
     [](Client& c) { return !c.exists("/f"); }},
    {"set the mode of a folder", [](Client& c) { return set_mode(c, "/d"); },
     [](Client& c) { return has_mode(c, "/d"); }},
    {"set the mode of the root", [](Client& c) { return set_mode(c, "/"); },
     [](Client& c) { return has_mode(c, "/"); }},
    {"open for writing, and close with a length",
     [](Client& c) { return open_and_close(c, "/f", kMayRead | kMayWrite); },
     [](Client& c) { return c.stat("/f")->file_length().records() == 20; }},
    {"open an empty file for writing", [](Client& c) { return renew(c, "/bare"); }, {}},
    {"renew", [](Client& c) { return renew(c, "/f"); }, {}},
    {"stat",
     [](Client& c) {
       const auto one = c.stat("/d/in/f");
       return one ? Code::kOk : one.error().code;
     },
     {}},
    {"list",
     [](Client& c) {
       const auto all = c.list("/d/in");
       return all ? Code::kOk : all.error().code;
     },
     {}},
    {"list by id",
     [](Client& c) {
       Envelope e;
       e.mutable_list_files();
       return code_of(c.ask(e));
     },
     {}},
};

}  // namespace

TEST_CASE("whichever call of the directory fails in an operation, that is done and said so, or not done and said so") {
  for (const auto& operation : kOperations) {
    for (const bool restarted : {false, true}) CHECK(fail_each_call(operation, restarted) > 1);
  }
}

}  // namespace pif::server::testing
