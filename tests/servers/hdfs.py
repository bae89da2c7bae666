"""
A real HDFS for tests: a NameNode and a DataNode of Hadoop's own, in one JVM, on this machine.

Python drives it by py4j, which comes with pyspark. A gate is before WebHDFS of the NameNode: it
counts what is asked, and can refuse. What Spark asks, and what a DataNode is asked, passes it by.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from tests.servers.gate import Answer, Gate, Passing, as_json, handler, new_name, opened
from tests.servers.jars import fetched_jars
from tests.servers.program import SMALL, java, site
from tests.servers.store_server import StoreServer

from infold.spark.jvm.java import spark_home

CLUSTER = (
    "org/apache/hadoop/hadoop-client-minicluster",
    "3.4.2",
    "",
    "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
)
"""Of the version that Spark has of Hadoop."""

JAXB = (
    "javax/xml/bind/jaxb-api",
    "2.3.1",
    "",
    "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06",
)
"""What the server of WebHDFS takes for a part of Java, which it is no longer."""

_SETTINGS = {
    "dfs.permissions.superusergroup": "admins",
    # Pages of a listing are small, so that few files are several.
    "dfs.ls.limit": "20",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    # A file is complete once a DataNode has told of its block, which takes a moment.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "dfs.namenode.edits.noeditlogchannelflush": "true",
}

USER = "etl"
"""Whom tests are, which has no rights but those of its own folders."""


@dataclass
class Hdfs(StoreServer):
    """A running HDFS; what other stores call a bucket is a folder in it."""

    scheme = "hdfs"
    authority: str = ""
    files: Any = None
    """Hadoop's own client, as whoever may do everything."""
    own_files: Any = None
    """The same as the user of the tests."""
    jvm: Any = None
    cluster: Any = None

    def new_bucket(self) -> str:
        """A folder that nobody used, with the NameNode that it is of."""
        name = new_name("bucket-")
        self.files.mkdirs(self.path(f"/{name}"))
        self.files.setOwner(self.path(f"/{name}"), USER, USER)
        return f"{self.authority}/{name}"

    def make_folder(self, bucket: str, key: str) -> None:
        """A folder."""
        self.files.mkdirs(self.path_of(self.url_of(bucket, key)))

    def path(self, name: str) -> Any:
        """A path as Hadoop's client takes it."""
        return self.jvm.org.apache.hadoop.fs.Path(name)

    def path_of(self, url: str) -> Any:
        """The same of a URL."""
        return self.path("/" + url.partition("://")[2].partition("/")[2])

    def put(self, url: str, content: bytes) -> None:
        """Have a file."""
        made = self.own_files.create(self.path_of(url))
        made.write(content)
        made.close()

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        return {"endpoint": self.url, "user": USER}

    @contextmanager
    def refusing(self, method: str, url: str) -> Iterator[None]:
        """Nobody but who may do everything may write, or read, below a folder, for the block."""
        with ExitStack() as refused:
            if method == "write":
                for one in self.files.listStatus(self.path_of(url)):
                    below = f"{url}/{one.getPath().getName()}"
                    refused.enter_context(self.forbidding(below, 0o500))
            refused.enter_context(self.forbidding(url, 0o500 if method == "write" else 0o000))
            yield

    def status(self, url: str) -> Any:
        """What HDFS itself says of a file."""
        return self.files.getFileStatus(self.path_of(url))

    def append(self, url: str, content: bytes) -> None:
        """Have more in a file."""
        opened = self.files.append(self.path_of(url))
        opened.write(content)
        opened.close()

    @contextmanager
    def forbidding(self, url: str, mode: int) -> Iterator[None]:
        """A folder or a file with these rights only, for the block."""
        made = self.jvm.org.apache.hadoop.fs.permission.FsPermission
        before = self.status(url).getPermission()
        self.files.setPermission(self.path_of(url), made(f"{mode:03o}"))
        try:
            yield
        finally:
            self.files.setPermission(self.path_of(url), before)


class HdfsPassing(Passing):
    """A request to the gate."""

    def _says(self, status: int, code: str) -> Answer:
        said = {"exception": code, "javaClassName": "a.b", "message": "a rule says so"}
        return as_json(status, {"RemoteException": said})

    def _forward(self, content: bytes) -> Answer:
        self.headers.replace_header("Host", f"127.0.0.1:{self.port}")
        return super()._forward(content)


@contextmanager
def _java(folder: Path) -> Iterator[Any]:
    """A JVM with Hadoop in it, which ends with the block and with this process."""
    jars = [*fetched_jars([CLUSTER, JAXB]), spark_home() / "jars" / "*"]
    [py4j] = (spark_home() / "jars").glob("py4j-*.jar")
    with (folder / "hdfs.log").open("w") as log:
        port, token = launch_gateway(
            jarpath=str(py4j),
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=[*SMALL, f"-Dtest.build.data={folder}", f"-Djava.io.tmpdir={folder}"],
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            java_path=java(),
            create_new_process_group=True,
            enable_auth=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield gateway.jvm
        finally:
            gateway.shutdown()


def configured(jvm: Any, settings: Mapping[str, str]) -> Any:
    """Hadoop's settings."""
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _as_user(jvm: Any, uri: Any, conf: Any) -> Any:
    return jvm.org.apache.hadoop.fs.FileSystem.newInstance(uri, conf, USER)


@dataclass
class Pair(Hdfs):
    """An HDFS with two NameNodes, one of which is active."""

    active: int = 0

    def fail_over(self) -> None:
        """The other one is active from now on."""
        self.cluster.transitionToStandby(self.active)
        self.active = 1 - self.active
        self.cluster.transitionToActive(self.active)
        uri = self.cluster.getURI(self.active)
        self.files = self.cluster.getFileSystem(self.active)
        self.own_files = _as_user(self.jvm, uri, self.files.getConf())

    def write_site(self, folder: Path) -> None:
        """What Hadoop's clients are told of both, in a folder for ``HADOOP_CONF_DIR``."""
        name = self.authority
        nodes = [self.cluster.getNameNode(number) for number in (0, 1)]
        found = {"dfs.nameservices": name, f"dfs.ha.namenodes.{name}": "n0,n1"} | {
            f"dfs.namenode.rpc-address.{name}.n{number}": (
                f"127.0.0.1:{node.getNameNodeAddress().getPort()}"
            )
            for number, node in enumerate(nodes)
        }
        found[f"dfs.client.failover.proxy.provider.{name}"] = (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        )
        (folder / "hdfs-site.xml").write_text(site(found))


@contextmanager
def two_namenodes(hdfs: Hdfs, folder: Path) -> Iterator[Pair]:
    """A second HDFS for the block, in the JVM of the first."""
    jvm = hdfs.jvm
    conf = configured(jvm, {**_SETTINGS, "hdfs.minidfs.basedir": str(folder)})
    topology = jvm.org.apache.hadoop.hdfs.MiniDFSNNTopology.simpleHATopology()
    made = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")
    cluster = made(conf).nnTopology(topology).numDataNodes(1).build()
    try:
        cluster.waitActive()
        cluster.transitionToActive(0)
        ports = [cluster.getNameNode(n).getHttpAddress().getPort() for n in (0, 1)]
        yield Pair(
            authority="pair",
            files=cluster.getFileSystem(0),
            own_files=_as_user(jvm, cluster.getURI(0), conf),
            jvm=jvm,
            cluster=cluster,
            url=",".join(f"http://127.0.0.1:{port}" for port in ports),
        )
    finally:
        cluster.shutdown()


@contextmanager
def running(folder: Path) -> Iterator[Hdfs]:
    """An HDFS for the block."""
    with _java(folder) as jvm:
        conf = configured(jvm, {**_SETTINGS, "hdfs.minidfs.basedir": str(folder / "dfs")})
        made = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")
        cluster = made(conf).numDataNodes(1).nameNodePort(0).nameNodeHttpPort(0).build()
        cluster.waitActive()
        node = cluster.getNameNode()
        store = Hdfs(
            authority=f"127.0.0.1:{node.getNameNodeAddress().getPort()}",
            files=cluster.getFileSystem(),
            own_files=_as_user(jvm, cluster.getURI(), conf),
            jvm=jvm,
            cluster=cluster,
        )
        gate = Gate(("127.0.0.1", 0), handler(store, node.getHttpAddress().getPort(), HdfsPassing))
        try:
            with opened(gate) as store.url:
                yield store
        finally:
            cluster.shutdown()
