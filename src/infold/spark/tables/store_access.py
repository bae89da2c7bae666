"""What a session needs beside its catalog to read and write objects in the stores of a target."""

from __future__ import annotations

from infold.core.object_store import StoreKind, kind_of
from infold.core.project import Project
from infold.spark.tables.catalog import Jar, SparkCatalog

# Maven names a hundred more for it: of a protocol (gRPC) that infold does not use, and such as
# Spark has in newer versions. These are 3 MB together.

GCS_JARS = (
    Jar(
        "com.google.api",
        "gax",
        "2.57.0",
        "fd5e6692b5e5676d96c086899ac94a2c50758cd4276021bf0f7577fdceec92c2",
    ),
    Jar(
        "com.google.api-client",
        "google-api-client",
        "2.2.0",
        "58eca9fb0a869391689ffc828b3bd0b19ac76042ff9fab4881eddf7fde76903f",
    ),
    Jar(
        "com.google.api-client",
        "google-api-client-jackson2",
        "2.0.1",
        "94312af9e4436dc4e1dbae097e6b20d71c54002137a8f273a68f3a35d76b03d3",
    ),
    Jar(
        "com.google.apis",
        "google-api-services-iamcredentials",
        "v1-rev20211203-2.0.0",
        "4d8be16b12dafcde0e8f6d4c09699760c0af1b5f259205e425c5cfca73218d85",
    ),
    Jar(
        "com.google.apis",
        "google-api-services-storage",
        "v1-rev20240105-2.0.0",
        "3c11f3396ef25476654a1de17130824cd1cc6f2512abdb73e207257973d25bef",
    ),
    Jar(
        "com.google.auth",
        "google-auth-library-credentials",
        "1.29.0",
        "759ef3704a2ce15d9378f028a0e194d88b61343062e0c076c1e35850e30ba207",
    ),
    Jar(
        "com.google.auth",
        "google-auth-library-oauth2-http",
        "1.29.0",
        "2e915bab1e935d532c501d10637eedc102f829587bdf5dda4032ab3d1c5f46ef",
    ),
    Jar(
        "com.google.cloud.bigdataoss",
        "gcs-connector",
        "hadoop3-2.2.26",
        "ba2188a056a4cdaed4bda92e82cb21be80dfd05b0ffce9bdcc368e514e177f73",
    ),
    Jar(
        "com.google.cloud.bigdataoss",
        "gcsio",
        "2.2.26",
        "8be122b87c73cee215e339480c33e5ebf71f4c45ec82ff1259b5c3fcb810a2e0",
    ),
    Jar(
        "com.google.cloud.bigdataoss",
        "util",
        "2.2.26",
        "eb133bd5a945c021c0c05b25c1ed9c7b1c5e55434e4c5ad62aada6d747e876ee",
    ),
    Jar(
        "com.google.cloud.bigdataoss",
        "util-hadoop",
        "hadoop3-2.2.26",
        "2c89ddad65e52f61b5d4bbaf18a128836a6b13e3e5d8728a731e0052dcf72f1c",
    ),
    Jar(
        "com.google.flogger",
        "flogger",
        "0.7.1",
        "81b355ac0aeab008bafb30dbda8502826674fbf786a29dbbe68fab2cee5bff20",
    ),
    Jar(
        "com.google.flogger",
        "flogger-system-backend",
        "0.7.1",
        "fd66f2615a9d8fe1b2274f1b5005a5555a0cd63cdfdab2ca9500e6eb81dc5f63",
    ),
    Jar(
        "com.google.flogger",
        "google-extensions",
        "0.7.1",
        "b278fd4ed0e3019e9bf54b1e3a79cd4b6474376f01e4021db5d4d89eeef38ced",
    ),
    Jar(
        "com.google.http-client",
        "google-http-client",
        "1.45.0",
        "8340bbaf4410bd25921842e424cac3db9c916fdf47adfe73b8cba8dba7a06103",
    ),
    Jar(
        "com.google.http-client",
        "google-http-client-apache-v2",
        "1.42.3",
        "86d112c6f7e55c8f6d1bfbd47a02d25afd072c60a80dea8ef616fba278637600",
    ),
    Jar(
        "com.google.http-client",
        "google-http-client-gson",
        "1.45.0",
        "44dc1da1b7914fe7df306ac79e8c04d879cbfcb2e6afc8eb106ecf0be9dce96e",
    ),
    Jar(
        "com.google.http-client",
        "google-http-client-jackson2",
        "1.42.3",
        "b03a79f38e924e2eeaee673acf314626825284cb39948d06c2948ad083b4d089",
    ),
    Jar(
        "com.google.oauth-client",
        "google-oauth-client",
        "1.34.1",
        "193edf97aefa28b93c5892bdc598bac34fa4c396588030084f290b1440e8b98a",
    ),
    Jar(
        "io.grpc",
        "grpc-api",
        "1.67.1",
        "dfffa28ca4d2f98aeb844a185e8e6a43e53054748e75339a84a2df39e9981db6",
    ),
    Jar(
        "io.grpc",
        "grpc-context",
        "1.67.1",
        "244f0ee6ea6bdd36f64a523e29f523d08466f4cf944ef5cc75d64de43e4795e8",
    ),
    Jar(
        "io.opencensus",
        "opencensus-api",
        "0.31.1",
        "f1474d47f4b6b001558ad27b952e35eda5cc7146788877fc52938c6eba24b382",
    ),
    Jar(
        "io.opencensus",
        "opencensus-contrib-http-util",
        "0.31.1",
        "3ea995b55a4068be22989b70cc29a4d788c2d328d1d50613a7a9afd13fdd2d0a",
    ),
)
"""Only where files of sources, or tables, are in such a store."""


# Hadoop names the AWS SDK as one jar of 600 MB. These are the modules of it that the connector uses
# for what infold does, in the version that Hadoop was built with: 9 MB together.

_SDK = "software.amazon.awssdk"
_SDK_VERSION = "2.29.52"

_MODULES = {
    "annotations": "8cd8bd8afd7eca5a367f69fd87427f6d9f3e7d359962122da24d71f1963f00cd",
    "apache-client": "c96494be30ecac6f0ab7a35fdd91a4c77ca8a5daf62f3d9d84644ef0f0524dc6",
    "arns": "f5a4d1d9b4e4fc63c9bda49bcf1c59d23fd876b276c6b43aaca12969337303a6",
    "auth": "4d8143b6198dc7a530c2ccdd813129c132b96736086c0d4fea85480b9bdbc5fe",
    "aws-core": "eb560c064fbaac7e2e7f4a77ac343d3083bea0d7f6e2c69ba022d3f3e859be90",
    "aws-query-protocol": "1b117672963ee5059c45f2aadb110f191b578d108d8f08d7c7a59e6c0b098a8e",
    "aws-xml-protocol": "daf87b429373ad586d165003b5b1d4fe498c6472eb65ec9a9e2aa7d56f3917dd",
    "checksums": "bca99ff25c9b917d6be03e5dce78ad5328e7dca485e96024fa8476e4192a800a",
    "checksums-spi": "21193b9b648843dcaff493f0dd80abab9ee6871b203b9218120554698d8f7b8a",
    "crt-core": "4e1f33de21b688695fec91b977ddfa99e9d376edcbad06a62b0c138c60b37de4",
    "endpoints-spi": "e54f246c668d70b55cffe0c8fad18d4465e74e22db75139918bd30610093d1e6",
    "http-auth": "d8aa3bd376aaec7196396e65fe8755f1fdd169e51357f8128ecdc7d23a687450",
    "http-auth-aws": "7ae124e81ac0c2860bb61fdde34a388dbe823fef8509dd46a6bec805ada90308",
    "http-auth-aws-eventstream": "565a4aacce955c5ffaed551f6faaaa958e9e92b2f8514c8482f664edb2bab576",
    "http-auth-spi": "7a2168c5a7baa856d7ae9f9c4f7522d2db9f1361108c38f5b6ece66f249e6a2d",
    "http-client-spi": "8ea61ce3b527779fbfe119e0775c4b7cfdf274a979b1e50596a634685a5b6542",
    "identity-spi": "85104635abf9e5c044aaf7f8951b63efc2ef82051b5ee303571ee2e1fd8b46d0",
    "json-utils": "2652cdb3668311bcff6e643c8612b9fea266423ae1ce33743c84dd7f77904311",
    "metrics-spi": "1db2e3da338148ee40a716e1733c9a5b99e9e6daa4db3aa8bd7e718adafa2510",
    "profiles": "fef84619d101838ba45f48d0caddb09a85d9ed8bf869095bd7d2064796856cf7",
    "protocol-core": "7b32e41a3743b422d2edec1670f60b4c1e512fcd5ab7a53fef20742d6b9104d1",
    "regions": "5ee0e26277c679ffa70d83923b0d5f77a53066ecde8610f28be1856947d60eaf",
    "retries": "ca3752ba31399721980c6398992921ff5aa164e084b4c14484333df58c76a353",
    "retries-spi": "a4218ea742fc9e07a620629d7a258bfd92b8ea3ef75f1b99193d0898ca3efe99",
    "s3": "abaedea7e68063e9c4ab090f80d14b9884c57b50953bfe6e5acaa23025609efa",
    "s3-transfer-manager": "0c9e654637247187a7e2494eb7a8799477a772a7d554cd3ae787cd3e3bae3c55",
    "sdk-core": "ea8e9856569f85075a8a806d0481c4bd848c98b24fd6d706fc0b5883fc4604dc",
    "sts": "6495d0457f4e4c3724d8c9c5fe4f6f98c9530a22f92449c4cca5fd03622e4edb",
    "third-party-jackson-core": "eaece3eb60beb8ec09d8a4f48d5bff4110010b03cc23688bdcf2af2eb075cac6",
    "url-connection-client": "c7e3bbe6ca6df0e944ec72b4f6fd529f7d79336b52bf55428a73436153ed8d6e",
    "utils": "f150a38f2fec14ced2de6459bfe804f647c88baa573b218646ef89b436a29d42",
}
"""The SHA-256 of each module."""

S3_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.4.2",
        "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
    ),
    Jar(
        "org.reactivestreams",
        "reactive-streams",
        "1.0.4",
        "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
    ),
    Jar(
        "software.amazon.eventstream",
        "eventstream",
        "1.0.1",
        "0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822",
    ),
    *(Jar(_SDK, name, _SDK_VERSION, digest) for name, digest in _MODULES.items()),
)
"""Only where a target's tables or files of sources are in a store."""


# What it uses, Spark has. Maven names more for an older protocol (`wasb`), and OpenSSL.

AZURE_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-azure",
        "3.4.2",
        "f02ab756037abaecc45ea1869144ad3a69e25ccd84062bc37805837ca254e21c",
    ),
)
"""Only where files of sources, or tables, are in such a store."""


JARS = {StoreKind.S3: S3_JARS, StoreKind.GCS: GCS_JARS, StoreKind.AZURE: AZURE_JARS}
"""The connector of each store, and what it uses; Spark has that of HDFS."""


def reaching_stores(project: Project, catalog: SparkCatalog) -> SparkCatalog:
    """The same with the project's stores, where it has any. Raises where a secret is not there."""
    from infold.lake.stores.settings import HDFS_USER_SETTING, hadoop_settings, hadoop_user

    if not project.uses_stores:
        return catalog
    store = hadoop_settings(project.target.stores, project.buckets, project.root)
    kinds = sorted({kind_of(bucket) for bucket in project.buckets})
    jars = (jar for kind in kinds for jar in JARS.get(kind, ()))
    user = hadoop_user(project.target.stores, project.buckets, project.root)
    settings = {**catalog.settings, HDFS_USER_SETTING: user} if user else catalog.settings
    return SparkCatalog(settings, {**catalog.secrets, **store}, (*catalog.jars, *jars))
