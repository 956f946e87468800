// srpc-doctor on machines that are made up: a folder for /proc and /sys, ports as verbs would tell them.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/id.h"
#include "base/rng.h"
#include "tools/doctor/checks.h"

namespace cairn::srpc::doctor {
namespace {

namespace fs = std::filesystem;
using rdma::Gid;
using rdma::GidType;
using rdma::PortFacts;
using ::testing::HasSubstr;

Gid gid(uint32_t index, GidType type, const char* text) {
  Gid entry{.index = index, .type = type, .netdev = "eth2"};
  EXPECT_EQ(::inet_pton(AF_INET6, text, entry.bytes.data()), 1) << text;
  return entry;
}

// Starts out fit in every respect, with one RoCE port.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    SystemRng rng;
    machine_.root = fs::path(::testing::TempDir()) / ("doctor-" + Id128::random(rng).to_string());
    machine_.rdma_ports = [this]() -> Result<std::vector<PortFacts>> {
      if (ports_.empty()) return no_ports_;
      return ports_;
    };
    machine_.try_io_uring = [this] { return io_uring_; };
    machine_.run = [this](const std::vector<std::string>& command) -> std::optional<std::string> {
      if (command[1] == "pfc") return pfc_;
      return dscp_;
    };
    ports_.push_back(
        {.device = "mlx5_0",
         .port = 1,
         .state = rdma::PortState::active,
         .physical_state = "LinkUp",
         .link_layer = rdma::LinkLayer::ethernet,
         .active_mtu_bytes = 4096,
         .max_mtu_bytes = 4096,
         .netdev = "eth2",
         .netdev_mtu_bytes = 9000,
         .gids = {gid(0, GidType::roce_v1, "fe80::1"), gid(1, GidType::roce_v2, "fe80::1"),
                  gid(2, GidType::roce_v1, "::ffff:10.0.0.7"), gid(3, GidType::roce_v2, "::ffff:10.0.0.7")}});
    limits("unlimited", "1048576");
    file("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n");
    file("/proc/self/cgroup", "0::/system.slice/cairn.service\n");
    file("/proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:     512\nHugePages_Free:      100\n");
    file("/proc/sys/kernel/osrelease", "6.8.0\n");
    file("/proc/sys/net/ipv4/tcp_ecn", "2\n");
    file("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    for (int i = 0; i < 4; ++i) {
      file("/sys/devices/system/cpu/cpu" + std::to_string(i) + "/cpufreq/scaling_governor", "performance\n");
    }
    for (const char* side : {"roce_rp", "roce_np"}) ecn(side, "1");
  }
  ~DoctorTest() override { fs::remove_all(machine_.root); }

  void file(const std::string& path, const std::string& text) {
    const fs::path at = machine_.root / path.substr(1);
    fs::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  void limits(const std::string& memlock, const std::string& files) {
    file("/proc/self/limits",
         "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max open files            " +
             files +
             "   1048576   files     \n"
             "Max locked memory         " +
             memlock + "   unlimited   bytes     \n");
  }
  void ecn(const std::string& side, const std::string& value) {
    for (int i = 0; i < 8; ++i) file("/sys/class/net/eth2/ecn/" + side + "/enable/" + std::to_string(i), value + "\n");
  }

  // What is said about a subject, the worst of it.
  Finding about(const std::string& subject, const std::string& containing = "") {
    const Findings findings = examine(machine_);
    Finding worst{.level = Level::ok, .subject = "nothing said about " + subject, .text = ""};
    bool found = false;
    for (const Finding& finding : findings.list()) {
      if (finding.subject != subject || !finding.text.contains(containing)) continue;
      if (!found || finding.level > worst.level) worst = finding;
      found = true;
    }
    EXPECT_TRUE(found) << subject << " " << containing;
    return worst;
  }

  Machine machine_;
  std::vector<PortFacts> ports_;
  Error no_ports_{Errc::not_found, "the kernel knows no RDMA device"};
  Result<void> io_uring_;
  std::optional<std::string> pfc_ = "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off \n";
  std::optional<std::string> dscp_ = "dscp-prio AF31:3 \n";
};

TEST_F(DoctorTest, AFitMachineHasNothingToFix) {
  const Findings findings = examine(machine_);
  for (const Finding& finding : findings.list()) {
    EXPECT_EQ(finding.level, Level::ok) << finding.subject << ": " << finding.text;
    EXPECT_EQ(finding.fix, "") << finding.subject;
  }
  EXPECT_EQ(findings.worst(), Level::ok);
  EXPECT_THAT(about("rdma").text, HasSubstr("SRPC takes GID 3, RoCEv2 with the IPv4 address 10.0.0.7; MTU 4096"));
}

TEST_F(DoctorTest, APortThatIsDown) {
  ports_[0].state = rdma::PortState::down;
  ports_[0].physical_state = "Disabled";
  const Finding finding = about("rdma");
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.text, HasSubstr("mlx5_0 port 1 (down, Disabled; Ethernet, eth2"));
  EXPECT_THAT(finding.text, HasSubstr("SRPC uses TCP instead"));
  EXPECT_THAT(finding.fix, HasSubstr("ip link set eth2 up"));
}

TEST_F(DoctorTest, OnlyRoceV1) {
  std::erase_if(ports_[0].gids, [](const Gid& entry) { return entry.type != GidType::roce_v1; });
  const Finding finding = about("rdma");
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.text, HasSubstr("RoCEv1 GIDs only"));
  EXPECT_THAT(finding.fix, HasSubstr("cma_roce_mode"));
}

TEST_F(DoctorTest, OnlyLinkLocal) {
  ports_[0].gids.resize(2);
  const Finding finding = about("rdma");
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.text, HasSubstr("GID 1, RoCEv2 with the link-local address fe80::1"));
  EXPECT_THAT(finding.fix, HasSubstr("ip address add"));
}

TEST_F(DoctorTest, TheInterfaceIsElsewhere) {
  ports_[0].netdev.clear();
  for (Gid& entry : ports_[0].gids) entry.netdev.clear();
  const Finding finding = about("rdma");
  EXPECT_EQ(finding.level, Level::warning);
  EXPECT_THAT(finding.text, HasSubstr("isn't in this network namespace"));
  EXPECT_THAT(finding.fix, HasSubstr("rdma dev set mlx5_0 netns"));
}

TEST_F(DoctorTest, NoDevice) {
  ports_.clear();
  fs::remove_all(machine_.root / "sys/class/infiniband");
  limits("65536", "1048576");
  EXPECT_EQ(about("rdma").level, Level::note);
  EXPECT_THAT(about("rdma").text, HasSubstr("no RDMA device"));
  // Nobody needs locked memory then.
  EXPECT_EQ(about("memlock").level, Level::note);
  EXPECT_EQ(examine(machine_).worst(), Level::note);
}

TEST_F(DoctorTest, DevicesThatThisProcessCannotOpen) {
  ports_.clear();
  for (const Error& error :
       {Error(Errc::not_found, "no devices"), Error(Errc::permission_denied, "can't open mlx5_0")}) {
    no_ports_ = error;
    EXPECT_EQ(about("rdma").level, Level::warning);
    EXPECT_THAT(about("rdma").text, HasSubstr("mlx5_0 can't be used by this process"));
    EXPECT_THAT(about("rdma").fix, HasSubstr("there is no /dev/infiniband"));
  }
  file("/dev/infiniband/uverbs0", "");
  EXPECT_THAT(about("rdma").fix, HasSubstr("give this user"));
}

TEST_F(DoctorTest, LockedMemoryOf64KiB) {
  limits("65536", "1048576");
  Finding finding = about("memlock");
  EXPECT_EQ(finding.level, Level::error);
  EXPECT_THAT(finding.text, HasSubstr("64KiB"));
  EXPECT_THAT(finding.fix, HasSubstr("LimitMEMLOCK=infinity"));
  EXPECT_EQ(examine(machine_).worst(), Level::error);
  file("/proc/self/status", "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-3\n");
  EXPECT_EQ(about("memlock").level, Level::ok);
}

TEST_F(DoctorTest, Mtu) {
  ports_[0].netdev_mtu_bytes = 1500;
  ports_[0].active_mtu_bytes = 1024;
  const Finding finding = about("rdma");
  EXPECT_EQ(finding.level, Level::note);
  EXPECT_THAT(finding.text, HasSubstr("MTU 1024 of at most 4096, interface 1500"));
  EXPECT_THAT(finding.fix, HasSubstr("ip link set eth2 mtu 4200"));
}

TEST_F(DoctorTest, Bonds) {
  fs::create_directories(machine_.root / "sys/class/net/bond0");
  fs::create_symlink("../bond0", machine_.root / "sys/class/net/eth2/master");
  file("/sys/class/net/bond0/bonding/mode", "802.3ad 4\n");
  EXPECT_EQ(about("rdma", "bond0, bonding mode 802.3ad").level, Level::ok);
  file("/sys/class/net/bond0/bonding/mode", "balance-rr 0\n");
  EXPECT_EQ(about("rdma", "bond0, bonding mode balance-rr").level, Level::warning);
}

TEST_F(DoctorTest, Fabric) {
  ecn("roce_np", "0");
  EXPECT_EQ(about("fabric", "ECN: congestion").level, Level::warning);
  fs::remove_all(machine_.root / "sys/class/net/eth2/ecn");
  EXPECT_EQ(about("fabric", "reacts to ECN").level, Level::unknown);
  EXPECT_EQ(about("fabric", "PFC is on for priorities 3").level, Level::ok);
  pfc_ = "prio-pfc 0:off 1:off 2:off 3:off 4:off 5:off 6:off 7:off \n";
  EXPECT_EQ(about("fabric", "PFC is off").level, Level::note);
  pfc_ = "prio-pfc 0:on 1:on 2:on 3:on 4:on 5:on 6:on 7:on \n";
  EXPECT_EQ(about("fabric", "PFC is on for priorities all").level, Level::warning);
  pfc_ = std::nullopt;
  dscp_ = "";
  EXPECT_EQ(about("fabric", "PFC").level, Level::unknown);
  EXPECT_EQ(about("fabric", "DSCP").level, Level::unknown);
}

TEST_F(DoctorTest, LimitsOfTheProcess) {
  limits("unlimited", "4096");
  EXPECT_EQ(about("descriptors").level, Level::note);
  limits("unlimited", "256");
  EXPECT_EQ(about("descriptors").level, Level::error);
  fs::remove(machine_.root / "proc/self/limits");
  EXPECT_EQ(about("descriptors").level, Level::unknown);
  EXPECT_EQ(about("memlock").level, Level::unknown);
  file("/proc/meminfo", "HugePages_Total:       0\n");
  EXPECT_EQ(about("huge pages").level, Level::note);
  file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(about("huge pages").level, Level::ok);
  file("/proc/sys/vm/memfd_noexec", "2\n");
  EXPECT_EQ(about("shared memory").level, Level::warning);
}

TEST_F(DoctorTest, NoIoUring) {
  io_uring_ = Error(Errc::permission_denied, "io_uring_setup: Operation not permitted");
  EXPECT_EQ(about("io_uring").level, Level::error);
  EXPECT_THAT(about("io_uring").fix, HasSubstr("seccomp"));
  file("/proc/sys/kernel/io_uring_disabled", "2\n");
  EXPECT_EQ(about("io_uring").fix, "sysctl kernel.io_uring_disabled=0");
}

TEST_F(DoctorTest, Processor) {
  EXPECT_EQ(count_cores("0-3,8"), 5U);
  EXPECT_EQ(count_cores("7"), 1U);
  for (const char* bad : {"", "x", "3-1", "1-", "1;2"}) EXPECT_EQ(count_cores(bad), std::nullopt) << bad;
  file("/proc/self/status", "Cpus_allowed_list:\t2\n");
  EXPECT_EQ(about("cores").level, Level::note);
  file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(about("governor").level, Level::note);
  EXPECT_EQ(about("governor").text, "performance on 3, powersave on 1");
  fs::remove_all(machine_.root / "sys/devices");
  EXPECT_EQ(about("governor").level, Level::unknown);
  // The limit may stand anywhere above.
  file("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  file("/sys/fs/cgroup/system.slice/cairn.service/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/system.slice/cairn.service/memory.max", "1073741824\n");
  EXPECT_THAT(about("control group", "processor time").text, HasSubstr("at most 1.50 cores"));
  EXPECT_EQ(about("control group", "processor time").level, Level::warning);
  EXPECT_THAT(about("control group", "memory").text, HasSubstr("1.00 GiB"));
}

}  // namespace
}  // namespace cairn::srpc::doctor
