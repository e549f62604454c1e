"""Chinese."""

from __future__ import annotations

from state_ledger.demo.prose.language import Language, Theme

LANGUAGE = Language(
    code="zh",
    space="",
    summary="到目前为止的对话摘要",
    titles=("{place}的{thing}", "再看一下{thing}", "{thing}的计划"),
    questions=(
        "帮我看一下{thing}好吗？",
        "从上周起{thing}有什么变化？",
        "请简短一点，我只需要{thing}的部分。",
        "我试了两次，{thing}看起来还是不对。",
        "谢谢，可以了。接下来看{thing}。",
    ),
    answers=(
        "我先检查了{thing}，因为其他部分都取决于它。",
        "对{place}来说有两种办法，这里用简单的就够了。",
        "简单地说：可以，只是{thing}是个例外。",
        "{place}以外的内容我没有改动。",
        "这一部分已经完成，{thing}现在是正常的。",
        "关于{thing}我还不确定，继续之前会先核实。",
    ),
    steps=(
        "看一下{thing}现在的状态",
        "写下{place}需要什么",
        "先做最小的改动",
        "再检查一次{thing}",
        "周五再回来看",
    ),
    themes={
        "coding": Theme(
            things=("失败的测试", "解析器", "重试逻辑", "类型标注", "日期过滤", "缓存键", "数据库连接"),
            places=("计费模块", "接口客户端", "命令行工具", "后台任务", "上传页面"),
            titles=("修复{place}的{thing}", "重构{place}", "{thing}为什么出错"),
            questions=(
                "为什么{thing}只在第二次运行时失败？",
                "改{place}之前，先写一个测试。",
                "今天早上起构建就失败了。",
            ),
            answers=(
                "错误来自{thing}：传进来的是空列表，却取了第一个元素。",
                "我把{thing}移出了{place}，并加了一个测试。",
                "现在214个测试全部通过。",
            ),
        ),
        "servers": Theme(
            things=("备份任务", "证书", "磁盘空间", "邮件队列", "防火墙规则", "日志轮转", "反向代理"),
            places=("家里的服务器", "测试主机", "数据库服务器", "监控主机"),
            titles=("检查{place}的{thing}", "告警：{thing}", "迁移{thing}"),
            questions=(
                "昨晚{place}很慢，是{thing}的原因吗？",
                "{place}还剩多少空间？",
                "请把{thing}设置好，以后不用再管。",
            ),
            answers=(
                "{place}已经运行了41天，最近一小时主要花在{thing}上。",
                "日志显示凌晨三点十分左右有三次超时。",
                "没有重启，队列清空之后{thing}就恢复了。",
            ),
        ),
        "travel": Theme(
            things=("夜班火车", "安静的旅馆", "博物馆通票", "渡轮", "步行路线", "转机航班", "行李清单"),
            places=("台北", "京都", "成都", "里斯本", "首尔", "云南"),
            titles=("{place}五日游", "坐火车去{place}", "{place}的{thing}怎么选"),
            questions=(
                "在{place}有三天空闲，哪里不能错过？",
                "下雨天{thing}还值得吗？",
                "找一个比{thing}便宜的，离老城近一点。",
            ),
            answers=(
                "{place}的早晨很安静，十点前安排{thing}最好。",
                "每两小时一班，大约五十分钟。",
                "去{place}的话，我会先订{thing}，其余的先空着。",
            ),
        ),
        "cooking": Theme(
            things=("红烧茄子", "番茄鸡蛋面", "味噌汤", "柠檬挞", "葱油饼", "生日蛋糕"),
            places=("平日晚餐", "六位客人", "小烤箱", "冰箱冷冻室", "野餐"),
            titles=("{place}吃{thing}", "今晚做{thing}", "剩下的{thing}怎么办"),
            questions=("没有黄油了，还能做{thing}吗？", "{thing}能放几天？", "按{place}的量换算一下，用克。"),
            answers=(
                "可以，用植物油就行，{thing}多静置十分钟。",
                "{place}的话用480克面粉就够了。",
                "{thing}冷藏三天，冷冻两个月。",
            ),
        ),
        "money": Theme(
            things=("电费", "旅行预算", "报税表", "订阅清单", "房租上涨", "三月的发票"),
            places=("这个季度", "合租公寓", "小店", "明年"),
            titles=("{place}的预算", "整理{thing}", "{thing}对比"),
            questions=("{thing}花了多少钱？", "把{thing}按月做成表格。", "{place}能省下多少？"),
            answers=(
                "{thing}涨了百分之七，主要集中在两个月。",
                "{place}每个月大约能多留三百八十元。",
                "表格做好了，两个无法核实的数字已经标出。",
            ),
        ),
    },
)
